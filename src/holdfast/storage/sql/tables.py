"""The store's tables: their statements, and values as rows and back. Fields used in queries have columns; the rest is
JSON (`storage.sql.codecs`). A row with a damaged field is read without it: one row breaks no list."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from types import MappingProxyType, NoneType
from typing import Any, Final, Generic, TypeVar, get_args, get_type_hints

from holdfast.core.drafts import Draft
from holdfast.core.ids import OwnerId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.memory_ledger import DirtyTurn, Ledger, MemoryCommit
from holdfast.core.personas import Persona
from holdfast.core.project import Project
from holdfast.core.run import UNREAD_SETTINGS, Recovery, Run
from holdfast.core.saved_prompts import SavedPrompt
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.shares import Share
from holdfast.ports.store import Approval, Change, Fact, PushMessage, PushSubscription, StoredFile, ToolGrant
from holdfast.storage.sql.codecs import CODECS, EMPTY_FOR_NONE, SHOWN_PERSONA, UNREADABLE, Codec, decode, encode

log = logging.getLogger("holdfast.storage")

V = TypeVar("V")
Row = Sequence[Any]


class Table:
    """A table whose rows are replaced by `key`. The statements are constants, so a database prepares each once.
    `unread`: columns whose values are not read, which are empty texts instead."""

    def __init__(self, name: str, columns: str, key: str = "id", unread: Collection[str] = ()) -> None:
        self.name = name
        self.columns = columns
        self.names = tuple(columns.split(", "))
        self.key = key
        selected = ", ".join([f"'' AS {each}" if each in unread else each for each in self.names])
        self.select = f"SELECT {selected} FROM {name}"
        self.placeholders = ", ".join(["?"] * len(self.names))
        self._assignments = tuple(f"{each} = ?" for each in self.names)

    @cached_property
    def upsert(self) -> str:
        """Not REPLACE, which deletes the row and everything that refers to it."""
        key = self.key.split(", ")
        replaced = ", ".join(f"{each} = excluded.{each}" for each in self.names if each not in key)
        insert = f"INSERT INTO {self.name} ({self.columns}) VALUES ({self.placeholders})"
        return f"{insert} ON CONFLICT ({self.key}) DO UPDATE SET {replaced}"

    def update(self, changed: Sequence[int]) -> str:
        """An UPDATE of the columns at these positions by id."""
        return f"UPDATE {self.name} SET {', '.join([self._assignments[n] for n in changed])} WHERE id = ?"


def _instead(value: object, _: object) -> object:
    return value


_SPREAD: Final = (Lease, Recovery)
"""Types of fields that are None or an object with a column for each of its own fields, all of them NULL for None."""


class ValueTable(Table, Generic[V]):
    """A table with a row per value and a column per field, in the order of the fields. `codecs`: fields that are not
    stored as their type is. `unread`: values for fields with one column that are not read."""

    def __init__(
        self,
        name: str,
        kind: type[V],
        codecs: Mapping[str, Codec] | None = None,
        key: str = "id",
        unread: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        hints = get_type_hints(kind)
        names = list(hints)
        types = {field: get_args(hint)[0] if NoneType in get_args(hint) else hint for field, hint in hints.items()}
        codecs = {field: CODECS[each] for field, each in types.items() if each in CODECS} | dict(codecs or {})
        codecs |= {field: codecs[field]._replace(decode=partial(_instead, value)) for field, value in unread.items()}
        spread = {field: each for field, each in types.items() if each in _SPREAD}
        parts = {field: [part.name for part in fields(each)] for field, each in spread.items()}
        columns = [[f"{each}_{part}" for part in parts[each]] if each in spread else [each] for each in names]
        super().__init__(name, ", ".join(chain.from_iterable(columns)), key, unread)
        self._kind = kind
        self._fields = attrgetter(*names)
        self._encoders = [(names.index(field), codec.encode) for field, codec in codecs.items() if codec.encode]
        self._decoders = [(names.index(field), field, codec) for field, codec in codecs.items()]
        self._spread = [
            (names.index(field), len(parts[field]), each, attrgetter(*parts[field])) for field, each in spread.items()
        ]
        self._spread.sort(reverse=True, key=lambda each: each[0])

    def encode(self, value: V) -> Row:
        row: list[Any] = list(self._fields(value))
        for n, to_column in self._encoders:
            row[n] = to_column(row[n])
        for n, width, _, parts in self._spread:  # from the last: the positions of those before it remain valid
            row[n : n + 1] = (None,) * width if row[n] is None else parts(row[n])
        return row

    def decode(self, row: Row) -> V:
        values = list(row)
        for n, width, kind, _ in reversed(self._spread):
            if values[n] is not None:
                values[n] = kind(*values[n : n + width])
            del values[n + 1 : n + width]
        for n, field, codec in self._decoders:
            value = values[n]
            if value is not None:
                try:
                    values[n] = codec.decode(value)
                except UNREADABLE as error:
                    _report(self, row, field, error)
                    values[n] = codec.if_damaged
        return self._kind(*values)


def _report(table: Table, row: Row, field: str, error: Exception) -> None:
    reason = str(error)[:200] or type(error).__name__
    log.warning("%s of %s %s is damaged and cannot be read: %s", field, table.name, row[0], reason)


SESSIONS: Final = ValueTable("sessions", Session)
MESSAGES: Final = ValueTable("messages", Message, {"persona": SHOWN_PERSONA})
RUNS: Final = ValueTable("runs", Run)
LISTED_RUNS: Final = ValueTable("runs", Run, unread={"settings": UNREAD_SETTINGS})
CANCELLED_KEYS: Final = Table("cancelled_keys", "session_id, key, created_at", "session_id, key")
APPROVALS: Final = ValueTable("approvals", Approval)
GRANTS: Final = ValueTable("grants", ToolGrant, {"session_id": EMPTY_FOR_NONE}, key="owner, session_id, tool, scope")
SETTINGS: Final = Table("settings", "owner, name, value", "owner, name")
COMPACTIONS: Final = ValueTable("compactions", Compaction, key="session_id, message_id")
FILES: Final = ValueTable("files", StoredFile)
DRAFTS: Final = ValueTable("drafts", Draft, key="owner, session_id")
PROJECTS: Final = ValueTable("projects", Project)
PERSONAS: Final = ValueTable("personas", Persona)
PROMPTS: Final = ValueTable("prompts", SavedPrompt)
PROJECT_FILES: Final = Table("project_files", "project_id, file_id, added_at", "project_id, file_id")
ERASED_USAGE: Final = Table(
    "erased_usage",
    "ended_at, owner, model, project, billed, "
    "runs, input_tokens, output_tokens, cost, cached_tokens, reasoning_tokens, seconds",
    "ended_at, owner, model, project, billed",
)
SHARES: Final = ValueTable("shares", Share)
PUSH_SUBSCRIPTIONS: Final = ValueTable("push_subscriptions", PushSubscription)
PUSHES: Final = ValueTable("pushes", PushMessage, key="subscription_id, tag")
CHANGES: Final = ValueTable("changes", Change, key="n")
DIRTY_TURNS: Final = ValueTable("dirty_turns", DirtyTurn, key="session_id, n")
FACTS: Final = ValueTable("facts", Fact, key="n")
LEDGERS: Final = Table("ledgers", "session_id, owner, due_at, state", "session_id")


def from_ledger(ledger: Ledger) -> Row:
    """Fields without a column of their own are in `state`."""
    state = {each.name: getattr(ledger, each.name) for each in fields(ledger) if each.name not in LEDGERS.names}
    commit = ledger.commit
    if commit is not None:
        lease = commit.lease
        holder, until = (None, None) if lease is None else (lease.holder, lease.until)
        state["commit"] = [commit.handle, commit.first, commit.last, holder, until]
    return ledger.session_id, ledger.owner, ledger.due_at, encode(state)


def to_ledger(row: Row) -> Ledger:
    """A damaged one begins anew: nothing of its session is dirty."""
    session_id, owner, due_at, text = row
    try:
        return _ledger(session_id, owner, due_at, decode(text))
    except UNREADABLE as error:
        _report(LEDGERS, row, "state", error)
        return Ledger(session_id, owner)


def _ledger(session_id: SessionId, owner: OwnerId, due_at: float | None, state: dict[str, Any]) -> Ledger:
    told, commit = tuple(state.pop("told")), state.pop("commit")
    if commit is not None:
        handle, first, last, holder, until = commit
        commit = MemoryCommit(handle, first, last, None if holder is None else Lease(holder, until))
    return Ledger(session_id, owner, told=told, commit=commit, due_at=due_at, **state)
