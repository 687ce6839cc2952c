"""Memory ledgers, turns not yet remembered, and facts, as a store transaction reads and writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.core.ids import FactId, MessageId, OwnerId, SessionId
from holdfast.core.memory_ledger import DirtyTurn, Ledger


@dataclass(frozen=True, slots=True)
class Fact:
    """A piece of knowledge, as the built-in memory keeps it."""

    id: FactId
    owner: OwnerId
    key: str  # The subject. An owner has one fact per key: a later one replaces the earlier one.
    text: str
    session_id: SessionId
    message_id: MessageId  # The answer of the turn it came from. Session and message may be deleted by now.
    said_at: float
    created_at: float
    updated_at: float
    pinned: bool = False
    vector: bytes = b""
    n: int = 0  # Assigned by the store at every write, larger than all before: the order of lists and a cursor


class MemoryRows(Protocol):
    def ledger(self, sid: SessionId) -> Ledger | None: ...
    def put_ledger(self, ledger: Ledger) -> None: ...
    def drop_ledger(self, sid: SessionId) -> None:
        """Erase a ledger and its dirty turns."""

    def due_ledgers(self, by: float, limit: int) -> Sequence[Ledger]:
        """List ledgers whose `due_at` is not later than `by`, the earliest first (then by session id)."""

    def dirty_turns(self, sid: SessionId, limit: int) -> Sequence[DirtyTurn]:
        """List the turns of a session that are not committed to memory yet, by n."""

    def put_dirty_turn(self, turn: DirtyTurn) -> None:
        """Insert or replace the turn of its session and n."""

    def drop_dirty_turns(self, sid: SessionId, last: int) -> None:
        """Erase the turns up to and including `last`."""

    def fact(self, fid: FactId) -> Fact | None: ...
    def fact_with_key(self, owner: OwnerId, key: str) -> Fact | None: ...
    def put_fact(self, fact: Fact) -> None:
        """Insert or replace a fact under a new `n`, never smaller than a visible one, and update its search entry.
        StorageError: another fact of this owner has the key."""

    def drop_fact(self, fid: FactId) -> None: ...
    def drop_session_facts(self, sid: SessionId) -> None:
        """Erase all facts that came from the session."""

    def facts(
        self, owner: OwnerId, limit: int, *, text: str = "", prefix: bool = False, before: int | None = None
    ) -> Sequence[Fact]:
        """List facts, newest first (n); with `text`, those that contain all its words, with `prefix` the last as a
        prefix. A text without words matches nothing."""

    def facts_after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        """List facts written after `n`, the smallest first."""
