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
import tempfile
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tests.nursery import ROOT, Nursery

GUARD: Final = 60.0
_STEERING: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


nurseries: Final[list[Nursery]] = []
"""The one that the fixture `nursery` has started."""


@dataclass(frozen=True, slots=True)
class Done:
    returncode: int
    stdout: bytes
    stderr: bytes


def holdfast(
    *arguments: object, data: Path | None = None, stdin: bytes = b"", environ: dict[str, str] | None = None
) -> Done:
    """Run a command to its end."""
    if environ is not None:
        command = [sys.executable, "-m", "tests.cli.program", *_arguments(arguments, data)]
        own = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            timeout=GUARD,
            check=False,
            cwd=ROOT,
            env={**os.environ, **environ},
        )
        return Done(own.returncode, own.stdout, own.stderr)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as complaints:
        given.write(stdin)
        given.seek(0)
        read, write = os.pipe()
        try:
            process = nurseries[0].spawn(_arguments(arguments, data), given.fileno(), write, complaints.fileno())
        finally:
            os.close(write)
        said = _read_all(read, process.pid)
        code = process.wait()
        complaints.seek(0)
        return Done(code, said, complaints.read())


def _read_all(fd: int, pid: int) -> bytes:
    found, ends_at = bytearray(), time.monotonic() + GUARD
    while True:
        if not select.select([fd], [], [], max(0.0, ends_at - time.monotonic()))[0]:
            os.kill(pid, signal.SIGKILL)
            ends_at = time.monotonic() + GUARD
        elif got := os.read(fd, 65536):
            found += got
        else:
            os.close(fd)
            return bytes(found)


def ok(*arguments: object, data: Path | None = None, stdin: bytes = b"") -> str:
    """What it printed; it must have gone well."""
    done = holdfast(*arguments, data=data, stdin=stdin)
    assert done.returncode == 0, (done.returncode, done.stdout.decode(), done.stderr.decode())
    return done.stdout.decode()


def as_json(*arguments: object, data: Path) -> Any:
    return json.loads(ok(*arguments, "--json", data=data))


def _arguments(arguments: tuple[object, ...], data: Path | None) -> list[str]:
    return [*map(str, arguments), *([] if data is None else ["--data-dir", str(data)])]


class Terminal:
    """A command at a terminal. `seen` is everything it has shown, without what steers a terminal."""

    def __init__(self, *arguments: object, data: Path, width: int = 1000) -> None:
        """So wide that what is typed stays on its line."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        try:
            order = ["--at-terminal", *_arguments(arguments, data)]
            self._process = nurseries[0].spawn(order, slave, slave, slave)
        finally:
            os.close(slave)
        self._code: int | None = None
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

    def _press(self, key: str, ends_at: float) -> bool:
        if time.monotonic() >= ends_at or not select.select([], [self._master], [], 0)[1]:
            return False
        try:
            self.say(key)
        except OSError:  # it is gone
            return False
        return not self._closed()

    def _closed(self) -> bool:
        readable, _, _ = select.select([self._master], [], [], 0)
        if not readable:
            return False
        return not self._read(time.monotonic() + 1.0)

    def interrupt(self) -> None:
        self.say("\x03")

    def end(self, press: str | None = None) -> int:
        """Wait for its end; the exit code. `press` is pressed again each second: Python's own prompt loses a Ctrl-C
        that comes between its being shown and its waiting for a key."""
        ends_at = time.monotonic() + GUARD
        while self._read(ends_at if press is None else min(ends_at, time.monotonic() + 1.0)) or (
            press is not None and self._press(press, ends_at)
        ):
            pass
        assert time.monotonic() < ends_at, f"it did not end; this was shown:\n{self.seen}"
        self._code = self._process.wait()
        return self._code

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._code is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)
