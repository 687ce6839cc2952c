"""The shell tool with real processes: what it prints, what it may know, and that nothing of it stays."""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from holdfast.core.child_environment import inherited_variables
from holdfast.ports.tool import ToolResult
from holdfast.tools.shell import ShellLimits, ShellTool
from holdfast.tools.workspace.jail import Jail
from tests.harness import GUARD
from tests.tools.conftest import Bench

pytestmark = pytest.mark.anyio

SHELL = ShellTool({"PATH": os.environ["PATH"], "HOLDFAST_TOKEN": "s3cret"}, ShellLimits(exit_timeout=GUARD))
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans are adopted on Linux only")
STUBBORN = "trap '' TERM HUP INT;"
TREE = f"""
{STUBBORN}
sh -c '{STUBBORN.replace("'", '"')} echo $$ ready; while :; do sleep 100; done' &
setsid sh -c '{STUBBORN.replace("'", '"')} echo $$ ready; while :; do sleep 100; done' &
(setsid sh -c '{STUBBORN.replace("'", '"')} echo $$ ready; while :; do sleep 100; done' &)
echo $$ ready
while :; do sleep 100; done
"""
"""A child, one in a session of its own, one whose parent is gone, and the command itself; none heeds SIGTERM."""


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


async def test_output_comes_in_order_and_with_the_exit_code(bench: Bench) -> None:
    """X5: both outputs are one stream, shown while it runs, and the result says how it ended."""
    result = await bench.run(SHELL, command="echo one; echo two >&2; echo three; exit 3")
    assert result.content == "one\ntwo\nthree\n[exit code 3]"
    assert not result.is_error
    assert "".join(bench.printed) == "one\ntwo\nthree\n"


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
async def test_workspaces_are_private_whatever_the_umask(bench: Bench) -> None:
    """For the shell and the file tools, which share the directory and whichever of its parents is missing."""
    await bench.run(SHELL, command="true")
    other = Bench(bench.workspace.parent / "new" / "ses_2")
    with Jail(other.workspace).directory(()):
        pass
    for directory in (bench.workspace, bench.workspace.parent, other.workspace, other.workspace.parent):
        assert directory.stat().st_mode & 0o777 == 0o700, directory


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("true", "[exit code 0]"),
        ("kill -9 $$", "[exit code 137]"),
        ("cat; basename $PWD", "ses_1\n[exit code 0]"),
        (r"printf '\303'; printf '\244 \377 end'", "ä \N{REPLACEMENT CHARACTER} end\n[exit code 0]"),
    ],
    ids=["nothing printed", "signal", "no input", "split character"],
)
async def test_what_a_command_comes_to(bench: Bench, command: str, content: str) -> None:
    """X5: it runs in the session's directory, which is made for it, without input; a signal is told as shells do; a
    character that comes in two pieces is whole, and invalid UTF-8 is replaced."""
    assert (await bench.run(SHELL, command=command)).content == content


async def test_secrets_are_not_in_its_environment(bench: Bench) -> None:
    """X5: neither the command nor the process above it knows a secret of the server."""
    result = await bench.run(SHELL, command="env; tr '\\0' '\\n' < /proc/$PPID/environ")
    assert "PATH=" in result.content
    assert "s3cret" not in result.content


@pytest.mark.parametrize(
    ("name", "value", "stays"),
    [
        ("PATH", "/bin", True),
        ("LANG", "C.UTF-8", True),
        ("http_proxy", "http://proxy:3128", True),
        ("OPENAI_API_KEY", "x", False),
        ("HOLDFAST_PASSWORD", "x", False),
        ("HOLDFAST_DATA", "x", False),
        ("GITHUB_TOKEN", "x", False),
        ("hf_token", "x", False),
        ("AWS_SECRET_ACCESS_KEY", "x", False),
        ("DATABASE_URL", "postgres://me:pw@db/x", False),
        ("https_proxy", "http://me:pw@proxy", False),
        ("https_proxy", "http://key@proxy", False),
        ("MY_PLAIN_VARIABLE", "x", False),
        ("SSH_AUTH_SOCK", "/tmp/agent", False),
        ("LC_ALL", "C", True),
    ],
)
def test_only_known_variables_are_inherited(name: str, value: str, stays: bool) -> None:
    """X5: a variable that nobody listed stays with the server, whatever its name; the settings can list more."""
    assert (name in inherited_variables({name: value})) == stays
    assert inherited_variables({name: value}, (name,)) == {name: value}


async def test_long_output_keeps_its_head_and_tail(bench: Bench) -> None:
    """X5: the result says how much was left out, and what is shown meanwhile is bounded too."""
    shell = replace(SHELL, limits=ShellLimits(max_result=1000, max_live_output=2000))
    result = await bench.run(shell, command="seq 1 10000")
    assert result.content.startswith("1\n2\n3\n")
    assert result.content.endswith("9999\n10000\n[exit code 0]")
    total = len("".join(f"{n}\n" for n in range(1, 10001)))
    assert f"[… {total - 1000} characters left out …]" in result.content
    assert len("".join(bench.printed)) == 2000


async def test_a_flood_is_stopped(bench: Bench) -> None:
    """X5: a command that prints forever is ended, and says why."""
    shell = replace(SHELL, limits=ShellLimits(max_output=100_000))
    result = await bench.run(shell, command="yes")
    assert result.is_error
    assert result.content.endswith("[stopped: it printed more than 100000 characters]")


# ---- the end of process trees ----


class Pids:
    """Processes that said that they are there, by handles that cannot mean another one."""

    def __init__(self) -> None:
        self.fds: dict[int, int] = {}

    def add(self, pid: int) -> None:
        with suppress(ProcessLookupError):  # it has ended
            self.fds[pid] = os.pidfd_open(pid)

    def gone(self, within: float = 0.0) -> bool:
        """Whether all have ended, or do so before each of them has been waited for that long."""
        return all(select.select([fd], [], [], within)[0] for fd in self.fds.values())

    def close(self) -> None:
        for fd in self.fds.values():
            os.close(fd)


@pytest.fixture
def pids() -> Iterator[Pids]:
    found = Pids()
    yield found
    found.close()


async def all_ready(bench: Bench, pids: Pids, count: int) -> None:
    for line in (await bench.until("ready\n", count)).splitlines():
        pids.add(int(line.split()[0]))


async def out_of_time(bench: Bench, command: str, good: Callable[[ToolResult], bool]) -> tuple[ToolResult, float]:
    """The result of a command that its timeout ends, and the timeout: one in which a busy machine gets as far as `good`
    asks for."""
    for timeout in (0.5, 2.0, 8.0):
        result = await bench.run(SHELL, command=command, timeout=timeout)
        if good(result):
            return result, timeout
    raise AssertionError("it did not get so far")


@LINUX
async def test_cancel_ends_the_whole_tree(bench: Bench, pids: Pids) -> None:
    """C7: children, those in sessions of their own and those without a parent are gone when the cancel is done."""
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tg:
            tg.start_soon(lambda: bench.run(SHELL, command=TREE))
            await all_ready(bench, pids, 4)
            assert not pids.gone()
            tg.cancel_scope.cancel()
    assert pids.gone()


@LINUX
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_timeout_ends_the_whole_tree(bench: Bench, pids: Pids) -> None:
    """C7: the same when its time is over, after the grace that programs get to tidy up."""
    result, _ = await out_of_time(bench, TREE, lambda result: result.content.count("ready\n") == 4)
    for line in result.content.splitlines()[:-1]:
        pids.add(int(line.split()[0]))
    assert pids.gone()


@LINUX
async def test_what_a_command_leaves_running_ends_with_it(bench: Bench, pids: Pids) -> None:
    """C7: a background process does not outlive its command, nor hold its result up."""
    with anyio.fail_after(GUARD):
        result = await bench.run(SHELL, command="sleep 1000 & (setsid sleep 1000 &) ; echo $! ; exit 5")
    pid, end = result.content.splitlines()
    assert end == "[exit code 5]"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@LINUX
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_command_out_of_time_gets_a_moment_to_tidy_up(bench: Bench) -> None:
    """E1 C7: what it printed is kept, and the model is told why it ended; SIGTERM comes first, so a program that heeds
    it can still put its things away."""
    command = "trap 'echo tidy > tidied; exit' TERM; echo ready; while :; do sleep 0.01; done"
    tidied = bench.workspace / "tidied"
    result, timeout = await out_of_time(bench, command, lambda _: tidied.exists())
    assert (result.content, result.is_error) == (f"ready\n[stopped after {timeout:g} seconds]", True)
    assert tidied.read_text() == "tidy\n"


@LINUX
def test_the_tree_ends_when_the_server_dies(tmp_path: Path, pids: Pids) -> None:
    """X1: `kill -9` of the process that runs the tool takes the command's processes along."""
    args = [sys.executable, "-c", SERVER, str(tmp_path), TREE]
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        for _ in range(4):
            pids.add(int(server.stdout.readline().split()[0]))
        server.kill()
    assert pids.gone(GUARD)


SERVER = """
import os, sys
from pathlib import Path
import anyio
from holdfast.ports.tool import ToolContext
from holdfast.tools.shell import ShellTool

async def output(text):
    print(text, end="", flush=True)

anyio.run(ShellTool(dict(os.environ)).run, {"command": sys.argv[2]}, ToolContext(Path(sys.argv[1]), output))
"""
