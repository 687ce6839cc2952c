"""Runs commands as processes, to their end or at a terminal in which a test can type."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import tempfile
import termios
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.fork_server import ServerForker

GUARD: Final = 60.0
_CONTROL_SEQUENCES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


nurseries: Final[list[ServerForker]] = []
"""Holds the forker that the fixture `command_forker` has started."""


class Done(NamedTuple):
    returncode: int
    stdout: bytes
    stderr: bytes


def holdfast(*arguments: object, data: Path | None = None, stdin: bytes = b"") -> Done:
    """Runs a command to its end."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
        given.write(stdin)
        given.seek(0)
        read, write = os.pipe()
        try:
            process = nurseries[0].spawn(_arguments(arguments, data), given.fileno(), write, errors.fileno())
        finally:
            os.close(write)
        output = _read_all(read, process.pid)
        code = process.wait()
        errors.seek(0)
        return Done(code, output, errors.read())


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
    """Runs a command that must succeed, and returns its output."""
    done = holdfast(*arguments, data=data, stdin=stdin)
    assert done.returncode == 0, (done.returncode, done.stdout.decode(), done.stderr.decode())
    return done.stdout.decode()


def refused(*arguments: object, message: str, code: int = 1, data: Path | None = None, stdin: bytes = b"") -> None:
    """Runs a command that must fail with this exit code, this message on stderr and nothing on stdout."""
    done = holdfast(*arguments, data=data, stdin=stdin)
    errors = done.stderr.decode()
    assert (done.returncode, done.stdout) == (code, b""), errors
    assert message in errors
    assert "Traceback" not in errors


def as_json(*arguments: object, data: Path) -> Any:
    return json.loads(ok(*arguments, "--json", data=data))


def _arguments(arguments: tuple[object, ...], data: Path | None) -> list[str]:
    return [*map(str, arguments), *([] if data is None else ["--data-dir", str(data)])]


class Terminal:
    """A command at a terminal. `seen` is its output without control sequences."""

    def __init__(self, *arguments: object, data: Path, width: int = 1000) -> None:
        """The default width keeps typed text on one line."""
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
        """Waits for this text after the last one that was waited for, and returns what is between them."""
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
        self.seen += _CONTROL_SEQUENCES.sub("", got.decode("utf-8", "replace"))
        return bool(got)

    def say(self, text: str) -> None:
        os.write(self._master, text.encode())

    def enter(self, line: str) -> None:
        """Types a line and waits for its echo."""
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

    def quit(self, typed: str = "\x04") -> None:
        """Leaves a chat at its prompt."""
        self.until("you> ")
        self.say(typed)
        assert self.end() == 0

    def end(self, press: str | None = None) -> int:
        """Waits for the exit code. `press` is pressed again each second, because Python loses a Ctrl-C that arrives
        between showing its prompt and waiting for a key."""
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

    def __exit__(self, *_: object) -> None:
        if self._code is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)
