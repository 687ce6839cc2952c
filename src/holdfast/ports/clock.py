"""The clock and id ports: the engine gets the time and new ids from here, never from the system. The real ones:
`system`."""

from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, UTC. May jump; leases and timeouts do not depend on it."""


class Ids(Protocol):
    def new(self, prefix: str) -> str:
        """A new id `prefix_…`; ids of one process sort by creation."""
