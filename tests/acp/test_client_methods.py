"""The calls of a program: commands run in the sandbox, and wrong parameters are answered with the reason."""

import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp.exceptions import RequestError

from holdfast.agents.acp.client_methods import ClientMethods
from holdfast.tools.shell_sandbox import CommandRules, ShellSandbox
from tests.harness import GUARD
from tests.tools.test_shell_sandbox import needs_bubblewrap

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "params",
    [
        {"command": 5},
        {"command": "sh", "args": 5},
        {"command": "sh", "args": [5]},
        {"command": "sh", "args": "x"},
        {"command": "sh", "args": ["a\0b"]},
        {"command": "a\0b"},
        {"command": "true", "env": 5},
        {"command": "true", "env": [5]},
        {"command": "true", "env": [{"name": "A", "value": 5}]},
        {"command": "true", "env": [{"name": "A\0B", "value": "x"}]},
        {"command": "true", "env": [{"name": "A=B", "value": "x"}]},
        {"command": "\ud800"},
        {"command": "true", "cwd": 5},
        {"command": "true", "cwd": "missing"},
        {"command": "true", "args": ["x" * 5_000_000]},
    ],
)
async def test_a_command_with_wrong_parameters_is_refused(tmp_path: Path, params: dict[str, Any]) -> None:
    """The program gets an error it can show, and no terminal is left behind."""
    methods = ClientMethods(tmp_path, CommandRules({}, ShellSandbox(mode="off")))
    create = methods.get("terminal/create")
    assert create is not None
    async with anyio.create_task_group() as tasks:
        methods.start(tasks)
        for _ in range(20):  # more often than there may be terminals
            with pytest.raises(RequestError) as caught:
                await create(params)
            assert caught.value.code == -32602
        methods.close()


@pytest.fixture
async def methods(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[ClientMethods]:
    """In a sandbox of the mode that the test asks for."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    (tmp_path / "secret").write_text("s3cret")
    rules = CommandRules({"PATH": os.environ["PATH"], "KEPT": "kept"}, ShellSandbox((tmp_path,), mode=request.param))
    found = ClientMethods(cwd, rules)
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tasks:
            found.start(tasks)
            yield found
            found.close()


async def call(methods: ClientMethods, method: str, **params: Any) -> Any:
    found = methods.get(method)
    assert found is not None
    return await found(params)


async def run(methods: ClientMethods, command: str, **params: Any) -> tuple[Any, str]:
    """The status and the output of a command."""
    terminal = await call(methods, "terminal/create", command=command, **params)
    status = await call(methods, "terminal/wait_for_exit", **terminal)
    return status, (await call(methods, "terminal/output", **terminal))["output"]


@needs_bubblewrap
@pytest.mark.parametrize("methods", ["required"], indirect=True)
async def test_a_command_of_a_program_is_sandboxed(methods: ClientMethods, tmp_path: Path) -> None:
    """X5: it writes to the working directory alone, sees neither the server's data nor other processes, has no network,
    and gets the variables of commands and those that the program names."""
    (tmp_path / "work" / "below").mkdir()
    name = f"new-{os.getpid()}-{id(methods)}"
    steps = [
        f"cat {tmp_path}/secret",
        f"touch /usr/{name}",
        f"touch {tmp_path}/work/{name} {name} && pwd",
        'echo "$KEPT $OWN ${HOME-none}"',
        f"kill -0 {os.getpid()} || echo invisible",
    ]
    with socket.create_server(("127.0.0.1", 0)) as server:
        steps.append(f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}' && echo connected")
        status, output = await run(
            methods,
            "; ".join(steps),
            cwd=f"{tmp_path}/work/below",
            env=[{"name": "OWN", "value": "own"}],
        )
    assert "exitCode" in status
    assert "s3cret" not in output
    assert "Read-only file system" in output
    assert f"{tmp_path}/work/below\nkept own none\n" in output
    assert "invisible\n" in output
    assert "connected" not in output
    assert sorted(path.name for path in (tmp_path / "work").rglob("*")) == sorted(["below", name, name])
    assert (await run(methods, "sh", args=["-c", "exit 7"]))[0] == {"exitCode": 7}


@pytest.mark.parametrize("methods", ["required"], indirect=True)
async def test_without_the_required_sandbox_no_command_starts(
    methods: ClientMethods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X5: the program is told why, as often as it tries."""
    monkeypatch.setenv("PATH", "/nowhere")
    for _ in range(20):
        with pytest.raises(RequestError) as caught:
            await call(methods, "terminal/create", command="true")
        assert "bubblewrap is not installed" in str(caught.value.data)


@pytest.mark.parametrize("methods", ["off"], indirect=True)
async def test_without_a_sandbox_a_command_has_the_same_variables(methods: ClientMethods) -> None:
    """X5: those of commands, and those that the program names."""
    own = [{"name": "OWN", "value": "own"}]
    assert (await run(methods, 'echo "$KEPT $OWN ${HOME-none}"', env=own))[1] == "kept own none\n"
