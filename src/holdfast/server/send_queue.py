"""How much of what was written to a connection is still in the kernel."""

import fcntl
import struct
import termios
from typing import Protocol


class HasDescriptor(Protocol):
    def fileno(self) -> int: ...


def queued_bytes(sock: HasDescriptor) -> int:
    """Bytes that the other end has not acknowledged; 0 where the system does not tell. A send buffer has megabytes and
    can be written to only when a large part of it is free, so it says sooner than the socket whether a client reads."""
    if sock.fileno() < 0:
        return 0
    try:
        return int(struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)))[0])
    except OSError:
        return 0
