"""An agent program as a process: in a session of its own, under the subreaper, so that nothing of it outlives this
server."""

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

from holdfast.tools.shell import SUBREAPER

_MAX_STDERR: Final = 4_000  # Bytes at the end of a program's error output that are kept
_EXIT_TIMEOUT: Final = 5.0  # Seconds to wait for the program's processes to end


class ErrorTail:
    """The end of what a program wrote to its error output."""

    def __init__(self) -> None:
        self._tail = b""

    async def follow(self, process: Process) -> None:
        assert process.stderr is not None
        async for chunk in process.stderr:
            self._tail = (self._tail + chunk)[-_MAX_STDERR:]

    @property
    def text(self) -> str:
        return self._tail.decode(errors="replace").strip()


@asynccontextmanager
async def open_agent_process(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str]
) -> AsyncIterator[Process]:
    """Everything that the program started is ended when the block is left, or when this process dies."""
    read_end, control = os.pipe()
    try:
        process = await anyio.open_process(
            [sys.executable, "-I", "-S", SUBREAPER, "--control", str(read_end), *command],
            cwd=cwd,
            env=environment,
            start_new_session=True,
            pass_fds=[read_end],
        )
    except BaseException:
        os.close(control)
        raise
    finally:
        os.close(read_end)
    try:
        yield process
    finally:
        os.close(control)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_EXIT_TIMEOUT):
                await process.wait()
            await process.aclose()
