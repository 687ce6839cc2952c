"""Programs that take long, such as pip: they end when nobody waits for them any more."""

import os
import sys
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from holdfast.models import local_model_runtime, local_model_weights
from holdfast.models.catalog import CatalogSettings, ModelCatalog
from holdfast.models.subprocess_runner import run_program
from holdfast.testing.fakes import FakeClock
from tests.upstream import GUARD

NAP = 2 * GUARD  # Longer than a test waits


def slow_program(directory: Path) -> tuple[Path, Path]:
    """A program that starts another one and waits for it, and the pipe to which it writes the process ids of both."""
    program, pipe = directory / "slow", directory / "pipe"
    os.mkfifo(pipe)
    program.write_text(f"#!/bin/sh\nsleep {NAP:g} &\necho $$ $! > {pipe}\nwait\n")
    program.chmod(0o700)
    return program, pipe


def is_running(pid: int) -> bool:
    """Also false for a process that has ended and waits for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def end_of(pids: list[int]) -> None:
    with anyio.fail_after(GUARD):
        while any(map(is_running, pids)):
            await anyio.lowlevel.checkpoint()


@pytest.mark.anyio
async def test_closing_the_request_stops_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread, the lock and every process end at once, and the next download can start."""
    program, pipe = slow_program(tmp_path)
    monkeypatch.setattr(sys, "executable", str(program))  # it stands for pip, or for the check of what is installed
    with (tmp_path / local_model_weights.FILE).open("wb") as file:
        file.truncate(local_model_weights.SIZE)
    catalog = ModelCatalog(CatalogSettings(ports={}, weights_directory=tmp_path), FakeClock())
    with anyio.fail_after(GUARD):
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(catalog.download, lambda _done, _total: None)
                pids = [int(pid) for pid in (await to_thread.run_sync(pipe.read_text)).split()]
                tasks.cancel_scope.cancel()
            await end_of(pids)


def test_the_installation_builds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source package would run its own code while it is built, so pip takes wheels only."""
    pytest.importorskip("pip")
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho "error: $*"\nexit 1\n')
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(local_model_runtime, "is_installed", lambda: False)
    with pytest.raises(local_model_runtime.RuntimeInstallError, match=r"pip install .*--only-binary=:all: "):
        local_model_runtime.install(lambda: None)


@pytest.mark.anyio
async def test_a_program_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    """With the programs it started."""
    program, pipe = slow_program(tmp_path)
    pids: list[int] = []
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:  # the first call is before the start
            pids.extend(int(pid) for pid in pipe.read_text().split())

    with pytest.raises(TimeoutError, match="did not end"):
        await to_thread.run_sync(lambda: run_program([str(program)], check, timeout=0.0))
    assert len(pids) == 2
    await end_of(pids)


def test_the_end_of_the_output_is_kept() -> None:
    """The exit code and what both streams said last."""
    code = "import sys; print('x' * 200_000); print('why', file=sys.stderr); sys.exit(3)"
    done = run_program([sys.executable, "-c", code], lambda: None, timeout=GUARD)
    assert (done.exit_code, len(done.output)) == (3, 64 * 1024)
    assert done.output.endswith("why\n")
