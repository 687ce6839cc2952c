"""Commands as processes: run to their end, or at a terminal of their own, where a test can type."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tests.nursery import ROOT

GUARD: Final = 60.0
_STEERING: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def _environment(more: dict[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return {**kept, "TERM": "xterm", "PYTHONWARNINGS": "error", **(more or {})}


def holdfast(
    *arguments: object, data: Path | None = None, stdin: bytes = b"", environ: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command to its end."""
    return subprocess.run(
        _command(arguments, data),
        input=stdin,
        capture_output=True,
        timeout=GUARD,
        check=False,
        cwd=ROOT,
        env=_environment(environ),
    )


def ok(*arguments: object, data: Path | None = None, stdin: bytes = b"") -> str:
    """What it printed; it must have gone well."""
    done = holdfast(*arguments, data=data, stdin=stdin)
    assert done.returncode == 0, (done.returncode, done.stdout.decode(), done.stderr.decode())
    return done.stdout.decode()


def as_json(*arguments: object, data: Path) -> Any:
    return json.loads(ok(*arguments, "--json", data=data))


def _command(arguments: tuple[object, ...], data: Path | None, *first: str) -> list[str]:
    where = [] if data is None else ["--data-dir", str(data)]
    return [sys.executable, "-m", "tests.cli.program", *first, *map(str, arguments), *where]


class Terminal:
    """A command at a terminal. `seen` is everything it has shown, without what steers a terminal."""

    def __init__(self, *arguments: object, data: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 1000, 0, 0))  # what is typed stays on its line
        try:
            self.process = subprocess.Popen(
                _command(arguments, data, "--at-terminal"),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=ROOT,
                start_new_session=True,
                env=_environment(),
            )
        finally:
            os.close(slave)
        self.seen = ""
        self._at = 0

    def until(self, text: str) -> str:
        """Wait until this is shown after what was waited for before; returns what is between."""
        ends_at = time.monotonic() + GUARD
        while (found := self.seen.find(text, self._at)) < 0:
            assert self._read(ends_at), f"{text!r} was not shown; this was:\n{self.seen[self._at :]}"
        between, self._at = self.seen[self._at : found], found + len(text)
        return between

    def _read(self, ends_at: float) -> bool:
        readable, _, _ = select.select([self._master], [], [], max(0.0, ends_at - time.monotonic()))
        if not readable:
            return False
        try:
            got = os.read(self._master, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += _STEERING.sub("", got.decode("utf-8", "replace"))
        return bool(got)

    def say(self, text: str) -> None:
        os.write(self._master, text.encode())

    def enter(self, line: str) -> None:
        """Type a line; what follows comes after its echo."""
        self.say(f"{line}\n")
        self.until(f"{line}\n")

    def interrupt(self) -> None:
        self.say("\x03")

    def end(self) -> int:
        """Wait for its end; the exit code."""
        ends_at = time.monotonic() + GUARD
        while self._read(ends_at):
            pass
        return self.process.wait(GUARD)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._master)
