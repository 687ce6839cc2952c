"""Starts programs of the tests without their imports, which take a second of processor time each.

`Preloaded` starts a process that imports the program's module once. What a server under test starts is this file:
`python -SE start_forked_program.py SOCKET ARGUMENT...` has the process fork, gives the fork its own standard
streams, and ends as the fork ends. If it is killed, the fork is killed with it."""

import json
import os
import signal
import socket
import sys

_MESSAGE = 1 << 16


def start(path: str, arguments: list[str]) -> int:
    """The program's exit code."""
    order = {"arguments": arguments, "cwd": os.getcwd(), "environ": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(path)
        socket.send_fds(line, [json.dumps(order).encode()], [0, 1, 2])
        for fd in (0, 1, 2):
            os.close(fd)  # the fork's alone: when it ends, the server sees the end of its output
        code = int(line.recv(_MESSAGE) or 1)
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(start(sys.argv[1], sys.argv[2:]))
