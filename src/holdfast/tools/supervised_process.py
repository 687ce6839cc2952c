"""Starts a command under `subreaper.py`, which ends everything the command started, also when this process dies."""

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Final

import anyio
from anyio.abc import Process

_SUBREAPER: Final = str(Path(__file__).with_name("subreaper.py"))
_EXIT_TIMEOUT: Final = 5.0


@dataclass(frozen=True, slots=True)
class SupervisedProcess:
    process: Process
    _control: int  # The pipe to the subreaper

    def extend_grace_period(self) -> None:
        """Give the command's processes longer to exit after SIGTERM. Leave the block right after this."""
        os.write(self._control, b"t")


@asynccontextmanager
async def open_supervised_process(
    command: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    *,
    has_input: bool = False,
    stderr: int = STDOUT,
    exit_timeout: float = _EXIT_TIMEOUT,
) -> AsyncIterator[SupervisedProcess]:
    """The command runs in a session of its own and inherits no files. Everything that it started is ended when the
    block is left; if that takes longer than `exit_timeout` seconds, only the subreaper is killed. Without `has_input`,
    its standard input is empty."""
    read_end, control = os.pipe()
    option = ["--control", str(read_end)] if has_input else []
    try:
        process = await anyio.open_process(
            [sys.executable, "-I", "-S", _SUBREAPER, *option, *command],
            stdin=PIPE if has_input else read_end,
            stderr=stderr,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            pass_fds=[read_end] if has_input else [],
        )
    except BaseException:
        os.close(control)
        raise
    finally:
        os.close(read_end)
    try:
        yield SupervisedProcess(process, control)
    finally:
        os.close(control)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(exit_timeout):
                await process.wait()
            await process.aclose()
