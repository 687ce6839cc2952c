"""A memory provider that records, and that can be made to wait and to fail."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from holdfast.core.ids import OwnerId, RunId, SessionId
from holdfast.core.parts import Json
from holdfast.ports.memory import MemoryBatch, MemoryProvider


@dataclass
class RecordingProvider:
    """What it was told is in the lists, in order. `fails`: as many calls of `commit` and `forget` raise, after the time
    of their doing if `late` is set: the caller is told of a failure that was none."""

    name: str = "recording"
    commits: list[MemoryBatch] = field(default_factory=list)
    """Those that were taken."""
    tried: list[MemoryBatch] = field(default_factory=list)
    """Those that came."""
    forgotten: list[SessionId] = field(default_factory=list)
    released: list[SessionId] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    items: Sequence[Mapping[str, Json]] = ()
    fails: int = 0
    late: bool = False
    down: bool = False
    """`recall` raises."""
    holds: anyio.Event | None = None
    """While it is there and not set, commits wait for it."""
    slow: anyio.Event | None = None
    """The same of `recall`."""
    reached: anyio.Event = field(default_factory=anyio.Event)
    at_once: int = 0
    most_at_once: int = 0
    closed: int = 0

    def hold(self) -> anyio.Event:
        """The next commit waits until the event is set; `reached` says that it is there."""
        self.reached = anyio.Event()
        self.holds = anyio.Event()
        return self.holds

    @property
    def runs(self) -> list[list[RunId]]:
        """Of the commits that were taken."""
        return [[turn.run_id for turn in batch.turns] for batch in self.commits]

    async def recall(self, owner: OwnerId, sid: SessionId, query: str) -> Sequence[Mapping[str, Json]]:
        self.asked.append(query)
        if self.slow is not None:
            await self.slow.wait()
        if self.down:
            raise ConnectionError(f"{self.name} is down")
        return self.items

    async def commit(self, batch: MemoryBatch) -> None:
        self.tried.append(batch)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.reached.set()
            if self.holds is not None:
                await self.holds.wait()
            await anyio.lowlevel.checkpoint()
            self._fail(late=False)
            self.commits.append(batch)
            self._fail(late=True)
        finally:
            self.at_once -= 1

    async def forget(self, owner: OwnerId, sid: SessionId) -> None:
        await anyio.lowlevel.checkpoint()
        self._fail(late=False)
        self.forgotten.append(sid)

    async def release(self, sid: SessionId) -> None:
        await anyio.lowlevel.checkpoint()
        self.released.append(sid)

    async def health(self) -> str | None:
        return f"{self.name} is down" if self.fails or self.down else None

    async def close(self) -> None:
        self.closed += 1

    def _fail(self, *, late: bool) -> None:
        if self.fails and self.late == late:
            self.fails -= 1
            raise ConnectionError(f"{self.name} {'was cut off' if late else 'is down'}")


class ProviderTable:
    """`ports.MemoryProviders` over a mapping, which a test may change."""

    def __init__(self, providers: Mapping[str, MemoryProvider], default: str | None = None) -> None:
        self.providers = dict(providers)
        self.default = default

    @property
    def names(self) -> Collection[str]:
        return self.providers

    def get(self, name: str) -> MemoryProvider | None:
        return self.providers.get(name)
