"""The store's rows and indexes, and the log that takes a transaction back."""

from dataclasses import field
from typing import Any, Final, TypeVar

from holdfast.core.ids import ApprovalId, FactId, FileId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.ledger import DirtyTurn, Ledger
from holdfast.core.parts import Json
from holdfast.core.run import Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.values import dataclass
from holdfast.ports import Approval, Change, Fact, Grant, StoredFile

K = TypeVar("K")
V = TypeVar("V")
Index = dict[K, dict[V, None]]
"""Sets by key, as dicts. Their order means nothing: taking back an erasure puts a member at the end."""

_ABSENT: Final = object()


@dataclass(slots=True)
class Data:
    """Written through an `UndoLog` alone."""

    sessions: dict[SessionId, Session] = field(default_factory=dict)
    messages: dict[MessageId, Message] = field(default_factory=dict)
    runs: dict[RunId, Run] = field(default_factory=dict)
    approvals: dict[ApprovalId, Approval] = field(default_factory=dict)
    compactions: dict[SessionId, dict[MessageId, Compaction]] = field(default_factory=dict)
    grants: dict[tuple[OwnerId, SessionId | None, str, str], Grant] = field(default_factory=dict)
    settings: dict[tuple[OwnerId, str], Json] = field(default_factory=dict)
    files: dict[FileId, StoredFile] = field(default_factory=dict)
    ledgers: dict[SessionId, Ledger] = field(default_factory=dict)
    dirty_turns: dict[SessionId, dict[int, DirtyTurn]] = field(default_factory=dict)
    facts: dict[FactId, Fact] = field(default_factory=dict)
    fact_keys: dict[tuple[OwnerId, str], FactId] = field(default_factory=dict)
    purges: dict[RunId, None] = field(default_factory=dict)
    changes: dict[int, Change] = field(default_factory=dict)
    """Numbers without gaps, from the counter `trimmed` (exclusive) to `change`."""
    counters: dict[str, int] = field(default_factory=lambda: {"trimmed": 0, "change": 0, "found": 0, "fact": 0})

    session_messages: Index[SessionId, MessageId] = field(default_factory=dict)
    children: Index[tuple[SessionId, MessageId | None], MessageId] = field(default_factory=dict)
    session_runs: Index[SessionId, RunId] = field(default_factory=dict)
    open_runs: Index[SessionId, RunId] = field(default_factory=dict)
    pending_runs: dict[RunId, None] = field(default_factory=dict)
    keys: dict[tuple[OwnerId, SessionId, str], RunId] = field(default_factory=dict)
    run_approvals: Index[RunId, ApprovalId] = field(default_factory=dict)
    file_users: Index[FileId, MessageId] = field(default_factory=dict)
    titles: dict[SessionId, int] = field(default_factory=dict)
    """Titles that can be found, each with its place in the order of hits. A changed text keeps its place."""
    texts: dict[MessageId, int] = field(default_factory=dict)
    """Messages that can be found, likewise."""


class UndoLog:
    """What each written place held before, so that `rollback` is the exact inverse of all writes since."""

    def __init__(self) -> None:
        self._old: list[tuple[dict[Any, Any], Any, Any]] = []

    def rollback(self) -> None:
        for mapping, key, old in reversed(self._old):
            if old is _ABSENT:
                del mapping[key]
            else:
                mapping[key] = old
        self._old.clear()

    def set(self, mapping: dict[K, V], key: K, value: V) -> None:
        self._old.append((mapping, key, mapping.get(key, _ABSENT)))
        mapping[key] = value

    def remove(self, mapping: dict[K, V], key: K) -> None:
        if key in mapping:
            self._old.append((mapping, key, mapping.pop(key)))

    def add_to(self, index: Index[K, V], key: K, member: V) -> None:
        members = index.get(key)
        if members is None:
            self.set(index, key, {member: None})
        elif member not in members:
            self.set(members, member, None)

    def take_from(self, index: Index[K, V], key: K, member: V) -> None:
        """An index holds no empty sets: a key is there if and only if it has members."""
        members = index.get(key)
        if members is not None and member in members:
            self.remove(members, member)
            if not members:
                self.remove(index, key)
