"""The process that has imported a program and forks it: `python -m tests.program_forker MODULE SOCKET`. See
`start_forked_program`."""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tests import start_forked_program
from tests.fork_server import ROOT

_MESSAGE: Final = 1 << 16


class Preloaded:
    """The test's end. `command` and `arguments` start the program."""

    def __init__(self, module: str, directory: Path) -> None:
        self._socket = directory / "preloaded"
        command = [sys.executable, "-m", "tests.program_forker", module, str(self._socket)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it listens

    command: Final = sys.executable

    @property
    def arguments(self) -> list[str]:
        return ["-SE", start_forked_program.__file__, str(self._socket)]

    def __enter__(self) -> "Preloaded":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()


class _Forks:
    """Forks on request, and reports how each fork ended. Ends with its stdin."""

    def __init__(self, program: Any, listener: socket.socket) -> None:
        self._program = program
        self._listener = listener
        self._lines: dict[int, socket.socket] = {}

    def run(self) -> None:
        woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            readable, _, _ = select.select([0, woken, self._listener.fileno()], [], [])
            if 0 in readable:
                return
            if woken in readable:
                os.read(woken, 4096)
                self._report()
            if self._listener.fileno() in readable:
                self._fork()

    def _report(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with self._lines.pop(ended[0]) as line, contextlib.suppress(OSError):
                    line.send(str(os.waitstatus_to_exitcode(ended[1])).encode())

    def _fork(self) -> None:
        line, _ = self._listener.accept()
        request, fds, _, _ = socket.recv_fds(line, _MESSAGE, 3)
        if not request:
            line.close()
            return
        pid = os.fork()
        if pid == 0:
            self._become(json.loads(request), fds, line)
        self._lines[pid] = line
        for fd in fds:
            os.close(fd)

    def _become(self, order: dict[str, Any], fds: list[int], line: socket.socket) -> None:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            for target, fd in enumerate(fds):
                os.dup2(fd, target)
                os.close(fd)
            self._listener.close()
            for other in self._lines.values():
                other.close()
            os.environ.clear()
            os.environ.update(order["environ"])
            os.chdir(order["cwd"])
            threading.Thread(target=_die_with, args=(line,), daemon=True).start()
            code = self._program.main(order["arguments"])
        except BaseException:  # noqa: BLE001 - nothing may return into the loop
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _die_with(line: socket.socket) -> None:
    line.recv(1)  # ends when the process that the server started is gone
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    program = importlib.import_module(sys.argv[1])
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(sys.argv[2])
        listener.listen()
        print(flush=True)
        _Forks(program, listener).run()


if __name__ == "__main__":
    main()
