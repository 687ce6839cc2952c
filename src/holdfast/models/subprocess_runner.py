"""Runs a program that takes long on a thread that can give up waiting: pip, for `models.local_model_runtime`. Agent
programs and shell commands run under `tools.supervised_process` instead."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_INTERVAL: Final = 0.2  # Seconds between calls of `check`
_MAX_OUTPUT: Final = 64 * 1024  # Bytes; the end says why a program failed


@dataclass(frozen=True, slots=True)
class FinishedProgram:
    exit_code: int
    output: str  # The end of what it wrote


def run_program(
    command: Sequence[str],
    check: Callable[[], None],
    *,
    timeout: float,
    environment: Mapping[str, str] | None = None,
) -> FinishedProgram:
    """Runs it to its end. Blocks. Raises TimeoutError, or what `check` raises, which is called several times a second;
    then the program and the programs it started are killed."""
    check()
    ends_at = time.monotonic() + timeout
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            process_group=0,
        ) as program,
    ):
        try:
            while program.poll() is None:
                check()
                if time.monotonic() > ends_at:
                    raise TimeoutError(f"{command[0]} did not end within {timeout:g} seconds")
                try:
                    program.wait(timeout=_INTERVAL)
                except subprocess.TimeoutExpired:
                    continue
        except BaseException:  # the caller gives up
            _kill(program)
            raise
        output.seek(max(0, output.seek(0, os.SEEK_END) - _MAX_OUTPUT))
        return FinishedProgram(program.returncode, output.read().decode(errors="replace"))


def _kill(program: "subprocess.Popen[bytes]") -> None:
    if hasattr(os, "killpg") and program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
    else:
        program.kill()
