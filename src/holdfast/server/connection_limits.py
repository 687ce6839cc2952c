"""Limits how many connections are open, in total and per address.

A connection whose client has got all responses can be closed at any time, so when all are in use the oldest of these
makes room for a new one: idle connections of one client cannot lock the others out. Neither can clients that do not
read their responses: `uvicorn_server.HttpProtocol` disconnects them after `write_deadline`.

Strangers who wait for their password to be checked may wait for long (`login_throttle`). If there is no idle
connection, one of theirs makes room, mostly of a client that has many: a guesser cannot lock out whoever needs no
password. A browser whose attempt is cut off repeats it.
"""

import resource
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Final, Protocol

from holdfast.core.loopback import is_loopback
from holdfast.server.draw_pool import DrawPool, Random

_MAX_FILES: Final = 65_536
_MAX_CONNECTIONS: Final = 16_384
_RESERVED_FILES: Final = 512  # For the databases, uploads, connections to models, and processes of tools
_WRITE_DEADLINE: Final = 30.0
_DRAWN: Final = 16  # Connections of which one is dropped
_SHARE_OF_ADDRESS: Final = 8
"""One address may use an eighth of all connections; IPv6 addresses of one /64 count as one, because one client has them
all. Loopback may use all: a reverse proxy connects from there."""


class LimitedConnection(Protocol):
    def __hash__(self) -> int: ...
    @property
    def client_address(self) -> str | None: ...
    def refuse(self) -> None:
        """Close the connection, which is idle."""

    def drop(self) -> None:
        """Close the connection, whose request is not answered."""


@dataclass(slots=True)
class ConnectionLimits:
    max_total: int
    head_timeout: float = 10.0  # Seconds in which a client must send the head of a request
    write_deadline: float = _WRITE_DEADLINE  # Seconds in which a client must take a part of what it is sent
    _open: Counter[str | None] = field(default_factory=Counter)
    _total: int = 0
    _idle: "OrderedDict[LimitedConnection, None]" = field(default_factory=OrderedDict)
    """In the order in which they became idle."""
    _droppable: DrawPool[LimitedConnection] = field(default_factory=DrawPool)
    _droppable_of: dict[str | None, DrawPool[LimitedConnection]] = field(default_factory=dict)  # By address
    _random: Random = SystemRandom().random

    def opened(self, connection: LimitedConnection) -> None:
        address = connection.client_address
        self._open[address] += 1
        self._total += 1
        self._idle[connection] = None
        limited = address is not None and not is_loopback(address)
        if limited and self._open[address] > max(self.max_total // _SHARE_OF_ADDRESS, 1):
            own = self._droppable_of.get(address)
            if own is None:
                connection.refuse()
            else:
                self._drop(own.pick(self._random))
        elif self._total > self.max_total:
            if len(self._idle) == 1 and self._droppable:
                self._drop(self._find_droppable())
            else:
                oldest, _ = self._idle.popitem(last=False)
                oldest.refuse()

    def may_drop(self, connection: LimitedConnection) -> None:
        """Until `must_keep`, the connection's request may be cut off to make room for another connection."""
        if connection not in self._droppable:
            self._droppable.add(connection)
            self._droppable_of.setdefault(connection.client_address, DrawPool()).add(connection)

    def must_keep(self, connection: LimitedConnection) -> None:
        self._droppable.discard(connection)
        own = self._droppable_of.get(connection.client_address)
        if own is not None:
            own.discard(connection)
            if not own:
                del self._droppable_of[connection.client_address]

    def _find_droppable(self) -> LimitedConnection:
        """Of a few that are drawn, one of the address that has most."""
        drawn = [self._droppable.pick(self._random) for _ in range(_DRAWN)]
        return max(drawn, key=lambda each: len(self._droppable_of[each.client_address]))

    def _drop(self, connection: LimitedConnection) -> None:
        self.must_keep(connection)
        connection.drop()

    def closed(self, connection: LimitedConnection) -> None:
        self.must_keep(connection)
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
