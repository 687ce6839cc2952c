"""The store's tables: their statements, and values as rows and back. Fields used in queries
have columns; the rest is JSON."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from types import MappingProxyType, NoneType
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, get_type_hints

from holdfast.core.drafts import Draft
from holdfast.core.events import Failure, Usage, failure_from_json
from holdfast.core.ids import MessageId
from holdfast.core.lease import Lease
from holdfast.core.memory_ledger import DirtyTurn, Ledger, MemoryCommit, TurnText
from holdfast.core.parts import Json, Part, all_from_json, all_to_json
from holdfast.core.personas import Persona
from holdfast.core.project import Project
from holdfast.core.run import UNREAD_SETTINGS, Intent, Recovery, Run
from holdfast.core.saved_prompts import SavedPrompt
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.shares import Share
from holdfast.ports.store import Approval, Change, Fact, PushMessage, PushSubscription, StoredFile, ToolGrant

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


class Codec(NamedTuple):
    """How the value of a field is stored in its column. `encode` is None for a value that is stored as it is. NULL is
    None without `decode`."""

    encode: Callable[[Any], Any] | None
    decode: Callable[[Any], Any]


_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_load = json.JSONDecoder(parse_constant=lambda _: None).decode
"""NaN and infinite numbers, which versions before 0.2 stored, become null: no response could contain them."""


def _encode(value: Json) -> str:
    """Empty values are encoded without `json`: most values are empty, and `json` takes as long as SQLite's lookup."""
    if not value and (value is None or isinstance(value, tuple | list)):
        return "null" if value is None else "[]"
    return _dump(value)


def decode(text: str) -> Any:
    if text == "null":
        return None
    if text == "[]":
        return []
    value = _load(text)
    if "\\ud" in text:  # perhaps a lone surrogate
        value = _load(_dump(value).encode("utf-8", "replace").decode())
    return value


def _optional(to_json: Callable[[Any], Json], from_json: Callable[[Any], Any]) -> Codec:
    """JSON in a column that is NULL for None."""
    return Codec(
        lambda value: None if value is None else _encode(to_json(value)),
        lambda text: from_json(decode(text)),
    )


def _failure(failure: Failure | None) -> Json:
    return None if failure is None else {"code": failure.code, "message": failure.message}


_EMPTY_FOR_NONE: Final = Codec(lambda value: value or "", lambda value: value or None)
_TUPLE: Final = Codec(_encode, lambda text: tuple(decode(text)))
_OPTIONAL_JSON: Final = _optional(lambda value: value, lambda data: data)


def _usage(usage: Usage) -> list[Json]:
    """Leaves out the last fields if they are unset, because earlier versions do not have them."""
    values = [usage.input_tokens, usage.output_tokens, usage.cost, usage.cached_tokens, usage.reasoning_tokens]
    return values if any(value is not None for value in values[3:]) else values[:3]


_CODECS: Final[Mapping[Any, Codec]] = {
    Json: Codec(_encode, decode),
    bool: Codec(None, bool),  # SQLite has integers
    tuple[str, ...]: _TUPLE,
    tuple[MessageId, ...]: _TUPLE,
    tuple[Part, ...]: Codec(lambda parts: _encode(all_to_json(parts)), lambda text: all_from_json(decode(text))),
    Failure: _optional(_failure, failure_from_json),
    Usage: _optional(_usage, lambda data: Usage(*data)),
    Intent: _optional(
        lambda intent: {"status": intent.status, "reason": intent.reason, "error": _failure(intent.error)},
        lambda data: Intent(data["status"], data["reason"], failure_from_json(data["error"])),
    ),
    TurnText: _optional(
        lambda text: [all_to_json(text.user), all_to_json(text.assistant)],
        lambda data: TurnText(*map(all_from_json, data)),
    ),
}
"""By the type of a field: how it is stored, if not as it is."""


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
        codecs = {field: _CODECS[each] for field, each in types.items() if each in _CODECS} | dict(codecs or {})
        codecs |= {field: Codec(codecs[field].encode, partial(_instead, value)) for field, value in unread.items()}
        spread = {field: each for field, each in types.items() if each in _SPREAD}
        parts = {field: [part.name for part in fields(each)] for field, each in spread.items()}
        columns = [[f"{each}_{part}" for part in parts[each]] if each in spread else [each] for each in names]
        super().__init__(name, ", ".join(chain.from_iterable(columns)), key, unread)
        self._kind = kind
        self._fields = attrgetter(*names)
        self._encoders = [(names.index(field), codec.encode) for field, codec in codecs.items() if codec.encode]
        self._decoders = [(names.index(field), codec.decode) for field, codec in codecs.items()]
        self._spread = [
            (names.index(field), len(parts[field]), each, attrgetter(*parts[field])) for field, each in spread.items()
        ]
        self._spread.sort(reverse=True, key=lambda each: each[0])

    def encode(self, value: V) -> Row:
        row: list[Any] = list(self._fields(value))
        for n, encode in self._encoders:
            row[n] = encode(row[n])
        for n, width, _, parts in self._spread:  # from the last: the positions of those before it remain valid
            row[n : n + 1] = (None,) * width if row[n] is None else parts(row[n])
        return row

    def decode(self, row: Row) -> V:
        values = list(row)
        for n, width, kind, _ in reversed(self._spread):
            if values[n] is not None:
                values[n] = kind(*values[n : n + width])
            del values[n + 1 : n + width]
        for n, decode in self._decoders:
            value = values[n]
            if value is not None:
                values[n] = decode(value)
        return self._kind(*values)


SESSIONS: Final = ValueTable("sessions", Session)
MESSAGES: Final = ValueTable("messages", Message, {"persona": _OPTIONAL_JSON})
RUNS: Final = ValueTable("runs", Run)
LISTED_RUNS: Final = ValueTable("runs", Run, unread={"settings": UNREAD_SETTINGS})
CANCELLED_KEYS: Final = Table("cancelled_keys", "session_id, key, created_at", "session_id, key")
APPROVALS: Final = ValueTable("approvals", Approval)
GRANTS: Final = ValueTable("grants", ToolGrant, {"session_id": _EMPTY_FOR_NONE}, key="owner, session_id, tool, scope")
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
    return ledger.session_id, ledger.owner, ledger.due_at, _encode(state)


def to_ledger(row: Row) -> Ledger:
    session_id, owner, due_at, text = row
    state = decode(text)
    told, commit = tuple(state.pop("told")), state.pop("commit")
    if commit is not None:
        handle, first, last, holder, until = commit
        commit = MemoryCommit(handle, first, last, None if holder is None else Lease(holder, until))
    return Ledger(session_id, owner, told=told, commit=commit, due_at=due_at, **state)
