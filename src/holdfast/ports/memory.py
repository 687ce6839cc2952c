"""The memory port: providers that recall before a run and commit at boundaries. When a provider is asked, and for how
long: `engine.session_memory`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.core.ids import FactId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import Json, Part
from holdfast.ports.store import Fact


@dataclass(frozen=True, slots=True)
class RememberedTurn:
    n: int
    run_id: RunId
    message_id: MessageId
    said_at: float
    user: Sequence[Part]
    assistant: Sequence[Part]
    """Empty if `external`. It may repeat what others wrote, so facts come from the user's own words alone."""
    external: bool = False
    """Whether tools brought in text from elsewhere (a page, a file, an MCP server), which may be an attack."""


@dataclass(frozen=True, slots=True)
class MemoryBatch:
    """Completed turns of one session for a provider to remember. The same id always has the same turns."""

    id: str
    owner: OwnerId
    session_id: SessionId
    model: str | None  # The session's
    turns: Sequence[RememberedTurn]


class MemoryProvider(Protocol):
    """Called outside of transactions, with a timeout; may raise anything. Only `recall` may overlap other calls."""

    async def recall(self, owner: OwnerId, sid: SessionId, query: str) -> Sequence[Mapping[str, Json]]:
        """Items `{text, source}` worth putting in front of the model, the most useful first."""

    async def commit(self, batch: MemoryBatch) -> None:
        """Remember a batch; durable when it returns. A batch may come again: applying it must be idempotent."""

    async def forget(self, owner: OwnerId, sid: SessionId) -> None:
        """Erase everything that came from the session."""

    async def release(self, sid: SessionId) -> None:
        """The session is evicted: release its resources."""

    async def health(self) -> str | None:
        """The problem in one sentence, or None if healthy."""

    async def close(self) -> None: ...


class MemoryProviders(Protocol):
    @property
    def default(self) -> str | None:
        """The provider of sessions that name none. None: whichever a commit names."""

    @property
    def names(self) -> Collection[str]: ...
    def get(self, name: str) -> MemoryProvider | None: ...


@dataclass(frozen=True, slots=True)
class NewFact:
    key: str
    text: str
    message_id: MessageId
    said_at: float
    vector: bytes


class FactStore(Protocol):
    """The facts in the store, as the built-in provider may touch them: the engine alone writes there."""

    async def after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        """Facts written after `n`, in order."""

    async def with_words(self, owner: OwnerId, words: Sequence[str], limit: int) -> Sequence[Sequence[Fact]]:
        """For each word the newest facts that have it."""

    async def by_id(self, ids: Sequence[FactId]) -> Sequence[Fact]:
        """The facts that still exist."""

    async def apply(self, batch: MemoryBatch, facts: Sequence[NewFact]) -> bool:
        """Write the facts and mark the batch as applied, at once. False: it already was, or the session is deleted."""

    async def forget(self, sid: SessionId) -> None: ...
