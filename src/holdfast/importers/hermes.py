"""Hermes Agent: its home directory, its `state.db` alone, or the JSON lines of `hermes sessions export`.

`state.db` is opened read-only and never locked for longer than one session takes to read. Where the home has a store of
Hermes WebUI, its titles, pins, projects, attachments and unfinished answers are used."""

import json
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from holdfast.core.errors import InvalidInputError
from holdfast.core.size_text import size_text
from holdfast.engine.export_import import MAX_SESSION
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.chat_rows import (
    COMPACTION,
    ChatRow,
    RowNote,
    RowReader,
    RowSource,
    StoredRows,
    decode_calls,
    join_segments,
    note_rows,
    plain,
)
from holdfast.importers.fields import (
    Json,
    Object,
    each_object,
    objects,
    require_list,
    require_object,
    require_text,
    seconds,
    text,
)
from holdfast.importers.guarded_database import GuardedDatabase, sort_key
from holdfast.importers.hermes_webui import WebUiStore
from holdfast.importers.json_objects import StoredList, parse_json
from holdfast.importers.scratch import Scratch
from holdfast.importers.session_builder import SessionBuilder, Skip
from holdfast.importers.source_files import SourceFiles

APP: Final = "hermes"
STATE: Final = "state.db"
SQLITE: Final = b"SQLite format 3\0"
_JSON_CONTENT: Final = "\0json:"
_SHOWN_ID: Final = 100  # Characters of an id in error messages
_MAX_PROFILES: Final = 100  # That the summary names
_ROW_SIZE: Final = 500  # Bytes that a row takes besides its texts
_TIMEOUT: Final = 10.0  # Seconds to wait for a writer
_SESSION_COLUMNS: Final = (
    "id", "title", "display_name", "model", "model_config", "parent_session_id", "started_at", "end_reason", "archived",
)  # fmt: skip
_MESSAGE_COLUMNS: Final = (
    "role", "content", "tool_calls", "tool_call_id", "tool_name", "reasoning", "reasoning_content", "timestamp",
    "active", "compacted",
)  # fmt: skip
_REQUIRED: Final = {"sessions": {"id"}, "messages": {"id", "session_id", "role", "content"}}


def read(files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    if files.path.is_dir():
        yield from _read_home(files.path, files, skip)
    elif files.is_archive:
        raise InvalidInputError(files.shown_as, f"is an archive; unpack it and import the directory with {STATE}")
    elif is_sqlite(files.path):
        yield from _read_database(files.path, None, files, skip)
    else:
        yield from _read_export(files, skip)


def is_sqlite(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(SQLITE)) == SQLITE


def _read_home(home: Path, files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    state, webui = home / STATE, home / "webui"
    if not state.is_file():
        raise InvalidInputError(str(home), f"has no {STATE}; name the home directory of Hermes, such as ~/.hermes")
    for profile in sorted(islice(home.glob(f"profiles/*/{STATE}"), _MAX_PROFILES)):
        skip(f"Profile {profile.parent.name}", f"it is a home of its own; import {profile.parent} too")
    if not webui.is_dir():
        yield from _read_database(state, None, files, skip)
        return
    beside = SourceFiles(webui, check=files.check, scratch=files.scratch)
    store = WebUiStore(beside)
    yield from _read_database(state, store, files, skip)


# ---- state.db ----


def _read_database(path: Path, webui: WebUiStore | None, files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    shown_as = files.shown_as if path == files.path else str(path)
    with _opened(path, shown_as, files.check) as database:
        sessions = {row["id"]: row for row in database.sessions(_RowLimit(f"{shown_as}, table sessions"))}
        files.total = len(sessions)

        def rows_of(sid: str, limit: _RowLimit) -> RowSource:
            found = database.messages(sid, limit, files.scratch)
            files.done += 1
            place = f"of session {sid[:_SHOWN_ID]}"
            return StoredRows(found, lambda row, n: _row(row, sessions[sid], f"{shown_as}, message {n + 1} {place}"))

        for chain in find_chains(sessions):
            limit = _RowLimit(f"{shown_as}, session {chain[0][:_SHOWN_ID]}")
            before = files.scratch.size
            yield _build([(sessions[sid], rows_of(sid, limit)) for sid in chain], webui, skip, files)
            files.scratch.truncate(before)
    if webui is not None:
        yield from _read_others(webui, sessions, skip)


def _read_others(webui: WebUiStore, known: Mapping[str, Object], skip: Skip) -> Iterator[SessionBuilder]:
    """Sessions that only the web UI has."""
    for name in webui.session_names:
        for place, item in webui.read_sessions(name):
            sid = text(item.get("session_id"))
            if sid and sid not in known and item.get("pre_compression_snapshot") is not True and "messages" in item:
                yield webui.build(item, place, skip, app=APP)


class _RowLimit:
    """Bounds the rows of one conversation, such as those of a chain of sessions."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._size = 0

    def read(self, rows: Generator[sqlite3.Row, None, None]) -> Iterator[Object]:
        with closing(rows):
            for row in rows:
                yield self.count(dict(row))

    def count(self, row: Object) -> Object:
        self._size += _ROW_SIZE + sum(len(cell) for cell in row.values() if isinstance(cell, str | bytes))
        if self._size > MAX_SESSION:
            raise InvalidInputError(self._place, f"is larger than {size_text(MAX_SESSION)}")
        return row


class _StateDatabase:
    """Queries of `state.db`. Each is a transaction of its own, so Hermes can go on writing."""

    def __init__(self, database: GuardedDatabase, shown_as: str) -> None:
        self._database = database
        self._columns = {table: self._find_columns(table, shown_as) for table in _REQUIRED}

    def _find_columns(self, table: str, shown_as: str) -> set[str]:
        columns = self._database.columns(table)
        if columns is None or not columns >= _REQUIRED[table]:
            lacking = "a table" if columns is None else ", ".join(sorted(_REQUIRED[table] - columns))
            raise InvalidInputError(shown_as, f"is not a {STATE} of Hermes: {table} lacks {lacking}")
        return columns

    def sessions(self, limit: _RowLimit) -> list[Object]:
        names = [name for name in _SESSION_COLUMNS if name in self._columns["sessions"]]
        rows = limit.read(self._database.query(f"SELECT {', '.join(names)} FROM sessions"))
        found = [row for row in rows if isinstance(row["id"], str) and row["id"]]
        return sorted(found, key=lambda row: (sort_key(row.get("started_at")), row["id"]))

    def messages(self, sid: str, limit: _RowLimit, scratch: Scratch) -> StoredList:
        """In the order of their ids: clocks step back."""
        names = ["id", *(name for name in _MESSAGE_COLUMNS if name in self._columns["messages"])]
        sql = f"SELECT {', '.join(names)} FROM messages WHERE session_id = ?"
        found, ids = StoredList(scratch), []
        for row in limit.read(self._database.query(sql, (sid,))):
            ids.append(row["id"])
            found.add(json.dumps(row, default=lambda value: None))  # bytes, which Hermes does not write
        return found.reordered(sorted(range(len(ids)), key=lambda n: sort_key(ids[n])))


@contextmanager
def _opened(path: Path, shown_as: str, check: Callable[[], object]) -> Iterator[_StateDatabase]:
    """A read-only connection. Without a write-ahead log there is no writer, and the file is opened as immutable: SQLite
    would otherwise create files beside it. A change meanwhile is an error, so nothing half-read is imported."""
    log = path.with_name(path.name + "-wal")
    immutable = not log.exists()
    before = path.stat()
    uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable={int(immutable)}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_TIMEOUT)) as connection:
            yield _StateDatabase(GuardedDatabase(connection, shown_as, before.st_size, check), shown_as)
    except sqlite3.Error as error:
        raise InvalidInputError(shown_as, f"cannot be read: {error}") from None
    after = path.stat()
    if immutable and (log.exists() or (after.st_mtime_ns, after.st_size) != (before.st_mtime_ns, before.st_size)):
        raise InvalidInputError(shown_as, "changed while it was read; import it again")


# ---- `hermes sessions export` ----


def _read_export(files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    """One session per line. Sessions of a chain can be anywhere, so those are held until the end."""
    (name,) = files.names
    files.total = 2 * files.size(name)
    limit = _RowLimit(f"{files.shown_as}, sessions")
    known = {text(item.get("id")): limit.count(_metadata(item)) for _, item in files.read_objects(name)}
    chains = find_chains(known)
    members = {sid: chain for chain in chains for sid in chain}
    held: dict[str, tuple[Object, RowSource]] = {}
    for place, item in files.read_objects(name, keep=any(len(chain) > 1 for chain in chains)):
        sid = require_text(item.get("id"), f"{place}, field id")
        segments = objects(item.get("segments")) or [item]
        if len(segments) > 1 or members.get(sid) == [sid]:
            yield _build(
                [(segment, _exported_rows(segment, segment, place)) for segment in segments], None, skip, files
            )
        else:
            held[sid] = known[sid], _exported_rows(segments[0], known[sid], place)
    for chain in chains:
        if found := [held[sid] for sid in chain if sid in held]:
            yield _build(found, None, skip, files)


def _metadata(item: Object) -> Object:
    """What has to be known of all sessions at once."""
    found = {name: item.get(name) for name in _SESSION_COLUMNS}
    found = {name: value for name, value in found.items() if isinstance(value, str | int | float)}
    return {**found, "model_config": {"_branched_from": True} if _is_fork(item) else None}


def _exported_rows(item: Object, session: Object, place: str) -> RowSource:
    """`session` is held for as long as the rows."""

    def make(message: Json, n: int) -> ChatRow:
        return _row(require_object(message, f"{place}, field messages.{n}"), session, f"{place}, field messages.{n}")

    return StoredRows(require_list(item.get("messages"), f"{place}, field messages"), make)


# ---- both ----


def find_chains(sessions: Mapping[str, Object]) -> list[list[str]]:
    """The sessions that are one conversation: a session that ended with a compaction is continued by its first child
    that is not a fork."""
    next_of: dict[str, str] = {}
    for sid, session in sessions.items():
        parent = text(session.get("parent_session_id"))
        ended = sessions[parent].get("end_reason") if parent in sessions and parent != sid else None
        if ended == "compression" and not _is_fork(session):
            next_of.setdefault(parent, sid)
    continued = set(next_of.values())
    chains = []
    for sid in sessions:
        if sid in continued:
            continue
        chain = [sid]
        while (following := next_of.get(chain[-1])) is not None:
            chain.append(following)
        chains.append(chain)
    in_chains = {sid for chain in chains for sid in chain}
    return chains + [[sid] for sid in sessions if sid not in in_chains]  # those of a cycle, each by itself


def _is_fork(session: Object) -> bool:
    config = session.get("model_config")
    if isinstance(config, str):
        try:
            config = parse_json(config)
        except ValueError:
            return False
    return isinstance(config, dict) and config.get("_branched_from") is not None


def _row(row: Object, session: Object, place: str) -> ChatRow:
    role = row.get("role")
    if role not in ("user", "assistant", "tool", "system"):
        role = "system" if isinstance(role, str) and role != COMPACTION else require_text(None, f"{place}, field role")
    archived = row.get("active") == 0
    return ChatRow(
        role,
        _content(row.get("content"), place),
        seconds(row.get("timestamp")),
        decode_calls(row.get("tool_calls")),
        text(row.get("tool_call_id")),
        text(row.get("tool_name")) or text(row.get("name")),
        text(row.get("reasoning")) or text(row.get("reasoning_content")),
        text(session.get("model")),
        rewound=archived and not row.get("compacted"),
    )


def _content(content: Any, place: str) -> Any:
    if isinstance(content, str) and content.startswith(_JSON_CONTENT):
        try:
            return parse_json(content.removeprefix(_JSON_CONTENT))
        except ValueError as error:
            raise InvalidInputError(f"{place}, field content", f"is not valid JSON: {error}") from None
    return content


def _build(
    chain: Sequence[tuple[Object, RowSource]], webui: WebUiStore | None, skip: Skip, files: SourceFiles
) -> SessionBuilder:
    first, last = chain[0][0], chain[-1][0]
    oid = text(first.get("id"))
    beside = list(_beside(chain, webui))
    titles = [text(item.get("title")) for item in beside[::-1]]
    titles += [text(session.get(name)) for name in ("title", "display_name") for session, _ in chain]
    title = next(filter(None, titles), "")
    created = seconds(first.get("started_at"))
    builder = SessionBuilder(APP, oid, skip, files.check, files.scratch, title=title, created_at=created)
    builder.archived = bool(last.get("archived"))
    notes: list[RowNote] = []
    for _, source in chain:
        segment = note_rows(source)
        if notes and segment and all(note.summary is None for note in segment):
            segment[0].begins_segment = True
        notes += segment
    rows = (note.row() for note in join_segments(notes))
    if webui is None or not beside:
        reader = RowReader(builder, lambda item: builder.add_missing_file(text(item.get("name")) or "file"))
        reader.add_all(rows)
        if reader.last == "user":
            reader.add_interrupted(AnswerParts(), None)
        return builder
    item = beside[-1]
    webui.add_flags(builder, item)
    builder.archived = builder.archived or bool(last.get("archived"))
    reader = RowReader(builder, webui.attachments(builder, [text(each.get("id")) for each, _ in chain]))
    reader.add_all(_attach(rows, beside))
    webui.add_pending(reader, item, notes)
    return builder


def _beside(chain: Sequence[tuple[Object, RowSource]], webui: WebUiStore | None) -> Iterator[Object]:
    """The session files of the web UI for the sessions of a chain."""
    for session, _ in chain if webui is not None else ():
        if webui is not None and (item := webui.read_session(text(session.get("id")))) is not None:
            yield item


def _attach(rows: Iterable[ChatRow], items: Iterable[Object]) -> Iterator[ChatRow]:
    """Gives a person's rows the attachments that the web UI has noted for the same text."""
    found = {
        plain(message.get("content")).strip(): objects(message.get("attachments"))
        for item in items
        for message in each_object(item.get("messages"))
        if message.get("role") == "user" and message.get("attachments")
    }
    for row in rows:
        if row.role == "user":
            row.attachments = found.get(plain(row.content).strip(), ())
        yield row
