"""Limits how many connections are open, in total and per address.

A connection whose client has got all responses can be closed at any time, so when all are in use the oldest of these
makes room for a new one: idle connections of one client cannot lock the others out. Neither can clients that do not
read their responses: `uvicorn_server.HttpProtocol` disconnects them after `write_deadline`.
"""

import resource
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Final, Protocol

from holdfast.core.loopback import is_loopback

_MAX_FILES: Final = 65_536
_MAX_CONNECTIONS: Final = 16_384
_RESERVED_FILES: Final = 512  # For the databases, uploads, connections to models, and processes of tools
_WRITE_DEADLINE: Final = 30.0
_SHARE_OF_ADDRESS: Final = 8
"""One address may use an eighth of all connections; IPv6 addresses of one /64 count as one, because one client has them
all. Loopback may use all: a reverse proxy connects from there."""


class LimitedConnection(Protocol):
    @property
    def client_address(self) -> str | None: ...
    def refuse(self) -> None:
        """Close the connection, which is idle or may be treated so."""


@dataclass(slots=True)
class ConnectionLimits:
    max_total: int
    head_timeout: float = 10.0  # Seconds in which a client must send the head of a request
    write_deadline: float = _WRITE_DEADLINE  # Seconds in which a client must take a part of what it is sent
    _open: Counter[str | None] = field(default_factory=Counter)
    _total: int = 0
    _idle: "OrderedDict[LimitedConnection, None]" = field(default_factory=OrderedDict)
    """In the order in which they became idle."""

    def opened(self, connection: LimitedConnection) -> None:
        address = connection.client_address
        self._open[address] += 1
        self._total += 1
        self._idle[connection] = None
        limited = address is not None and not is_loopback(address)
        if limited and self._open[address] > max(self.max_total // _SHARE_OF_ADDRESS, 1):
            connection.refuse()
        elif self._total > self.max_total:
            oldest, _ = self._idle.popitem(last=False)
            oldest.refuse()

    def closed(self, connection: LimitedConnection) -> None:
        self._idle.pop(connection, None)
        self._total -= 1
        address = connection.client_address
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def busy(self, connection: LimitedConnection) -> None:
        self._idle.pop(connection, None)

    def idle(self, connection: LimitedConnection) -> None:
        self._idle[connection] = None


def raise_file_limit(write_deadline: float = _WRITE_DEADLINE) -> ConnectionLimits:
    """Raise the number of files that this process may open, and derive the number of connections from it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = _MAX_FILES if soft == resource.RLIM_INFINITY else soft
    return ConnectionLimits(
        max(min(files - _RESERVED_FILES, _MAX_CONNECTIONS), files // 4), write_deadline=write_deadline
    )
