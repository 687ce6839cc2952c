"""A process that has imported everything and forks servers on request: each is a process of its own, and starting one
costs milliseconds instead of the imports. `python -m tests.nursery <socket fd> <module>` is started by `Nursery`; the
module has `main(arguments) -> exit code`."""

import gc
import importlib
import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol
from unittest.mock import MagicMock

from holdfast.faces.http import app
from holdfast.faces.openai.face import OpenAIFace
from holdfast.wiring import warming

ROOT: Final = Path(__file__).parents[1]
_MESSAGE: Final = 1 << 16


class Process(Protocol):
    @property
    def pid(self) -> int: ...
    def wait(self) -> int:
        """The exit code, or minus the signal. Call it when the process has closed its pipe, and once."""


class Nursery:
    """The test's end. Close it when its last server is gone."""

    def __init__(self, module: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.nursery", str(theirs.fileno()), module]
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])

    def spawn(self, arguments: Sequence[str], stdin: int, stdout: int, stderr: int) -> Process:
        socket.send_fds(self._socket, [json.dumps(arguments).encode()], [stdin, stdout, stderr])
        return _Born(self._socket, self._hear())

    def _hear(self) -> int:
        return int(self._socket.recv(_MESSAGE))

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()
        self._process.wait()


class _Born:
    def __init__(self, nursery: socket.socket, pid: int) -> None:
        self._nursery = nursery
        self.pid = pid

    def wait(self) -> int:
        self._nursery.send(json.dumps(self.pid).encode())
        return int(self._nursery.recv(_MESSAGE))


class Fresh:
    """The same without a nursery: a new interpreter."""

    def __init__(self, module: str) -> None:
        self._module = module

    def spawn(self, arguments: Sequence[str], stdin: int, stdout: int, stderr: int) -> Process:
        command = [sys.executable, "-m", self._module, *arguments]
        return subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=stdout, stderr=stderr)


def _learn() -> None:
    """What a server imports when it serves, and what FastAPI and pydantic import and keep when an app is put together:
    each of ours would do so anew, which is half of its start. The app is thrown away; nothing in it works."""
    for name in warming.LATER:
        importlib.import_module(name)
    app.build(MagicMock(), [OpenAIFace()])
    gc.collect()
    gc.freeze()  # or the first collection of each would copy all of this


def main() -> None:
    server = importlib.import_module(sys.argv[2])
    _learn()
    nursery = socket.socket(fileno=int(sys.argv[1]))
    while True:
        request, fds, _, _ = socket.recv_fds(nursery, _MESSAGE, 3)
        if not request:
            return
        order = json.loads(request)
        if isinstance(order, int):
            _, status = os.waitpid(order, 0)
            nursery.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            nursery.close()
            for target, fd in enumerate(fds):
                os.dup2(fd, target)
            os.closerange(3, max(fds) + 1)
            code = 1
            try:
                code = server.main(order)
            except BaseException:  # noqa: BLE001 - nothing may return into the nursery's loop
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        for fd in fds:
            os.close(fd)
        nursery.send(str(pid).encode())


if __name__ == "__main__":
    main()
