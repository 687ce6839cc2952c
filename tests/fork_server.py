"""A process that has imported everything and forks servers on request: each is a process of its own, and starting one
costs milliseconds instead of the imports. `python -m tests.fork_server <socket fd>` is started by `ForkServer`; a
server is a module with `main(arguments) -> exit code`."""

import gc
import importlib
import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol
from unittest import mock

import anyio
from argon2 import PasswordHasher

from holdfast.core.parts import all_to_json
from holdfast.core.session import Message
from holdfast.server import authenticator

ROOT: Final = Path(__file__).parents[1]
_MESSAGE: Final = 1 << 16
PATIENT: Final[dict[str, Any]] = {"cancel_wait": 20.0, "fence_wait": 20.0, "recall_wait": 20.0}
"""Engine settings of servers in tests: how long something may take on a busy machine."""


class Process(Protocol):
    @property
    def pid(self) -> int: ...
    def wait(self) -> int:
        """The exit code, or minus the signal. Call it when the process has closed its pipe, and once."""


class ForkServer:
    """The test's end of the process that forks. Close it when its last server is gone."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())]
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])

    def spawn(self, module: str, arguments: Sequence[str], stdin: int, stdout: int, stderr: int) -> Process:
        socket.send_fds(self._socket, [json.dumps([module, *arguments]).encode()], [stdin, stdout, stderr])
        return _ForkedProcess(self._socket, int(self._socket.recv(_MESSAGE)))

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()
        self._process.wait()


class _ForkedProcess:
    def __init__(self, forks: socket.socket, pid: int) -> None:
        self._forks = forks
        self.pid = pid

    def wait(self) -> int:
        self._forks.send(json.dumps(self.pid).encode())
        return int(self._forks.recv(_MESSAGE))


@dataclass(frozen=True, slots=True)
class ServerForker:
    """Forks servers of one module."""

    forks: ForkServer
    module: str

    def spawn(self, arguments: Sequence[str], stdin: int, stdout: int, stderr: int) -> Process:
        return self.forks.spawn(self.module, arguments, stdin, stdout, stderr)


class Fresh:
    """The same with a new interpreter for each."""

    def __init__(self, module: str) -> None:
        self._module = module

    def spawn(self, arguments: Sequence[str], stdin: int, stdout: int, stderr: int) -> Process:
        command = [sys.executable, "-m", self._module, *arguments]
        return subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=stdout, stderr=stderr)


async def read_lines() -> AsyncIterator[Any]:
    """What the test writes to this server, a JSON value a line, until it closes the pipe."""
    rest = b""
    while True:
        await anyio.wait_readable(0)
        got = os.read(0, 1 << 16)
        if not got:
            return
        *lines, rest = (rest + got).split(b"\n")
        for line in lines:
            yield json.loads(line)


def write_line(value: Any) -> None:
    """One whole line to the test. Blocks while the pipe is full."""
    line = json.dumps(value, separators=(",", ":"), default=_by_fields).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


def _by_fields(value: Any) -> dict[str, Any]:
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    return {**found, "parts": all_to_json(value.parts)} if isinstance(value, Message) else found


def hash_passwords_quickly() -> None:
    """In this process, and in those that it forks: argon2 takes a tenth of a second and 64 MiB by design."""
    quick = partial(PasswordHasher, time_cost=1, memory_cost=64, parallelism=1)
    mock.patch.object(authenticator, "PasswordHasher", quick).start()


def _learn() -> None:
    """What a server imports when it serves, and what Starlette and pydantic import and keep when an app is built:
    each of ours would do so anew, which is half of its start. The app is thrown away; nothing in it works."""
    from holdfast.app import deferred_imports
    from holdfast.server import app

    for name in deferred_imports.LATER:
        importlib.import_module(name)
    app.build(mock.MagicMock())
    gc.collect()
    gc.freeze()  # or the first collection of each would copy all of this


def main() -> None:
    hash_passwords_quickly()
    _learn()
    forker = socket.socket(fileno=int(sys.argv[1]))
    while True:
        request, fds, _, _ = socket.recv_fds(forker, _MESSAGE, 3)
        if not request:
            return
        order = json.loads(request)
        if isinstance(order, int):
            _, status = os.waitpid(order, 0)
            forker.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        server = importlib.import_module(order[0])
        pid = os.fork()
        if pid == 0:
            forker.close()
            for target, fd in enumerate(fds):
                os.dup2(fd, target)
            os.closerange(3, max(fds) + 1)
            code = 1
            try:
                code = server.main(order[1:])
            except BaseException:  # noqa: BLE001 - nothing may return into the forker's loop
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        for fd in fds:
            os.close(fd)
        forker.send(str(pid).encode())


if __name__ == "__main__":
    main()
