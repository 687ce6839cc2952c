"""The shell tool in bubblewrap: what a command can reach, with real namespaces."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import anyio
import anyio.lowlevel
import pytest

from holdfast.tools.shell import ShellLimits, ShellTool
from holdfast.tools.shell_sandbox import ShellSandbox
from tests.harness import GUARD
from tests.tools.conftest import Bench

pytestmark = pytest.mark.anyio

PYTHON = Path(sys.executable).resolve()
"""Not the environment's link to it, which may be below the hidden /tmp."""


def _missing() -> str:
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (apt install bubblewrap)"
    command = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"bubblewrap does not work here: {tried.stderr.strip()}"


MISSING = _missing()
needs_bubblewrap = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture
def home() -> Iterator[Path]:
    """Where homes usually are: neither below /tmp nor below /dev."""
    places = [Path(__file__).parents[2], Path("/opt"), Path("/srv")]
    usual = [
        place for place in places if place.parts[1] not in ("tmp", "var", "dev", "run") and os.access(place, os.W_OK)
    ]
    if not usual:
        pytest.skip("every place to write to is below a directory that the sandbox replaces")
    with tempfile.TemporaryDirectory(prefix=".sandbox-", dir=usual[0]) as directory:
        yield Path(directory)


@pytest.fixture
def sandbox(bench: Bench, home: Path) -> ShellSandbox:
    data = bench.workspace.parent
    bench.workspace.mkdir(parents=True)
    (data / "keys.json").write_text("s3cret")
    (data / "ses_2").mkdir()
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("s3cret")
    (home / ".netrc").write_text("s3cret")
    (home / "notes").write_text("plain")
    return ShellSandbox((data,), home)


@pytest.fixture
def shell(sandbox: ShellSandbox) -> ShellTool:
    return ShellTool({"PATH": os.environ["PATH"]}, ShellLimits(exit_timeout=GUARD), sandbox)


@needs_bubblewrap
async def test_files_outside_the_workspace_are_hidden_or_read_only(bench: Bench, shell: ShellTool, home: Path) -> None:
    """X5: a command writes to its workspace alone, and sees neither the server's data nor the user's credentials."""
    data = bench.workspace.parent
    (bench.workspace / "kept").write_text("before")
    free = Path("/tmp") / f"free-{uuid4()}"  # no other command, sandboxed or not, has made it
    command = (
        f"cat kept; echo after > made; ls {data}; cat {data}/keys.json {home}/.ssh/id {home}/.netrc; cat {home}/notes; "
        f"touch {home}/new /usr/new; touch {free} && ls /tmp; ls -A /run"
    )
    result = await bench.run(shell, command=command)
    assert "before" in result.content
    assert (bench.workspace / "made").read_text() == "after\n"
    assert "s3cret" not in result.content
    assert "ses_2" not in result.content
    assert "plain" in result.content
    assert result.content.count("Read-only file system") == 2
    assert free.name in result.content
    assert not await anyio.Path(free).exists()


@needs_bubblewrap
async def test_a_workspace_around_hidden_files_does_not_show_them(shell: ShellTool, home: Path) -> None:
    """X5: in a home directory, which people may choose for an agent, keys and the server's data stay hidden."""
    data, project = home / "data", home / "project"
    for directory in (data, project):
        directory.mkdir()
        (directory / "file").write_text("s3cret" if directory == data else "plain")
    sandbox = ShellSandbox((data,), home)
    command = f"cat {home}/.ssh/id {home}/.netrc {data}/file; cat ../notes file; echo x > made; echo y > ../made"
    words, environment = await sandbox.wrap(["sh", "-c", command], home, {}, cwd=project, variables={"A": "b"})
    assert environment == {}
    done = await anyio.run_process(words, check=False, env=environment)
    assert (done.stdout, (project / "made").read_text(), (home / "made").read_text()) == (b"plainplain", "x\n", "y\n")
    words, _ = await sandbox.wrap(["sh", "-c", "echo $A; cat /proc/self/comm"], Path("/"), {}, variables={"A": "b"})
    done = await anyio.run_process(words, env={})
    assert done.stdout == b"b\ncat\n"


@needs_bubblewrap
@pytest.mark.parametrize(
    "name",
    [
        ".claude/.credentials.json",
        ".claude.json",
        ".codex/auth.json",
        ".gemini/oauth_creds.json",
        ".hermes/.env",
        ".local/share/opencode/auth.json",
        ".config/goose/secrets.yaml",
    ],
)
async def test_logins_of_agents_are_hidden(bench: Bench, shell: ShellTool, home: Path, name: str) -> None:
    """X5: a command cannot read what the supported agent programs log in with."""
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text("s3cret")
    result = await bench.run(shell, command=f"cat {home}/notes {home}/{name}")
    assert result.content.startswith("plain")
    assert "s3cret" not in result.content


@needs_bubblewrap
async def test_sockets_in_the_home_directory_are_out_of_reach(bench: Bench, shell: ShellTool, home: Path) -> None:
    """X5: agents for passwords and keys put their sockets there; a command cannot connect to them."""
    address = home / "with space" / "a.sock"
    address.parent.mkdir()
    script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('connected')"
    command = f"{PYTHON} -c \"{script}\" '{address}'"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(address))
        server.listen()
        result = await bench.run(shell, command=command)
        alone = await anyio.run_process(command)
    assert alone.stdout == b"connected\n"
    assert "connected" not in result.content.splitlines()  # a traceback of Python 3.13 quotes the script
    assert "refused" in result.content


@needs_bubblewrap
async def test_processes_outside_are_invisible(bench: Bench, shell: ShellTool) -> None:
    """X5: neither the server's environment nor its process can be seen or signalled."""
    command = f"ls /proc | grep -c '^[0-9]'; kill -0 {os.getpid()} || echo none; cat /proc/{os.getpid()}/environ"
    result = await bench.run(shell, command=command)
    count, *_ = result.content.splitlines()
    assert int(count) < 8
    assert "No such" in result.content


@needs_bubblewrap
async def test_settings_of_the_kernel_are_read_only(bench: Bench, shell: ShellTool) -> None:
    """X5: whoever runs the server, a command can read them and opens none of them for writing."""
    command = "cd /proc; find $PWD/sys $PWD/irq -writable -type f; cat sys/kernel/ostype; : >> sys/vm/swappiness"
    result = await bench.run(shell, command=command)
    writable = [line for line in result.content.splitlines() if line.startswith("/proc")]
    assert not writable
    assert result.content.startswith("Linux\n")
    assert "[exit code 0]" not in result.content


@needs_bubblewrap
@pytest.mark.parametrize("network", [False, True])
async def test_the_network_is_off_unless_allowed(bench: Bench, shell: ShellTool, network: bool) -> None:
    """X5: not even this machine can be reached, the server's own API among it, unless the settings allow it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        allowed = replace(shell, sandbox=ShellSandbox(shell.sandbox.hidden, shell.sandbox.home, network=network))
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"
        result = await bench.run(allowed, command=f"bash -c '{connect}'")
    assert ("connected" in result.content) == network, result.content


@pytest.mark.parametrize(
    ("sandbox", "says"),
    [
        (ShellSandbox(), "without network access"),
        (ShellSandbox(network=True), "sandbox with network access"),
        (ShellSandbox(mode="off"), None),
    ],
    ids=["default", "network", "off"],
)
def test_the_model_is_told_what_a_command_can_reach(sandbox: ShellSandbox, says: str | None) -> None:
    """X5: the description of the tool says what the settings allow."""
    description = ShellTool({}, sandbox=sandbox).spec.description
    assert says in description if says else "sandbox" not in description


@needs_bubblewrap
async def test_a_sandboxed_command_ends_like_any_other(bench: Bench, shell: ShellTool) -> None:
    """C7: exit codes are passed on, and what a command leaves running ends with it."""
    with anyio.fail_after(GUARD):
        result = await bench.run(shell, command="sleep 1000 & (setsid sleep 1000 &); exit 5")
        assert result.content == "[exit code 5]"
        assert (await bench.run(shell, command="kill -9 $$")).content == "[exit code 137]"
        stopped = await bench.run(shell, command="echo begun; sleep 1000", timeout=1)
    assert stopped.content == "begun\n[stopped after 1 seconds]"


def _running(argument: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and argument.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
    return found


@needs_bubblewrap
async def test_cancel_ends_everything_in_the_sandbox(bench: Bench, shell: ShellTool) -> None:
    """C7: children, those in sessions of their own and those that ignore SIGTERM are gone when the cancel is done."""
    mark = f"{os.getpid()}{id(bench)}"  # an argument that no other process has
    stubborn = f'trap "" TERM; echo ready; while :; do sleep {mark}; done'
    command = f"sh -c '{stubborn}' & (setsid sh -c '{stubborn}' &) ; {stubborn}"
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tg:
            tg.start_soon(lambda: bench.run(shell, command=command))
            await bench.until("ready\n", 3)
            assert _running(mark)
            tg.cancel_scope.cancel()
        while _running(mark):
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("mode", ["off", "required"])
async def test_without_bubblewrap_it_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """X5: commands run unconfined and the status says why, or they are refused if the settings require a sandbox."""
    monkeypatch.setenv("PATH", str(bench.workspace))
    sandbox = ShellSandbox(mode="off" if mode == "off" else "required")
    shell = ShellTool({"PATH": "/usr/bin:/bin"}, sandbox=sandbox)
    result = await bench.run(shell, command="echo ran")
    assert ("ran" in result.content) == (mode == "off")
    status = await sandbox.status()
    assert (status.active, status.network) == (False, True)
    assert (
        str(status)
        == f"none: {'it is turned off in holdfast.toml' if mode == 'off' else 'bubblewrap is not installed'}"
    )
