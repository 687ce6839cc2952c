"""Hermes WebUI: its state directory (`~/.hermes/webui`), a ZIP archive of it, or a single exported session.

The messages of a session file are shown as they are; a turn that was never answered is completed from its run journal,
which holds what the page had shown when the process died."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from io import BytesIO
from operator import itemgetter
from typing import Final

from holdfast.core.errors import InvalidInputError
from holdfast.core.events import Ending
from holdfast.core.parts import FilePart
from holdfast.core.size_text import size_text
from holdfast.engine.export_import import MAX_SESSION
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.chat_rows import (
    COMPACTION,
    AddFile,
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
    Object,
    bounded,
    objects,
    require_list,
    require_object,
    require_text,
    seconds,
    text,
)
from holdfast.importers.json_objects import parse_json, read_document
from holdfast.importers.session_builder import MAX_FILE, SessionBuilder, Skip
from holdfast.importers.source_files import MAX_FILES, SourceFiles

APP: Final = "hermes-webui"
_SESSION: Final = re.compile(r"^[A-Za-z0-9][\w.-]*\.json$")
_NOT_SESSIONS: Final = frozenset({"projects.json", "workspaces.json", "settings.json", "sessions.json"})
_MAX_ID: Final = 1000  # Characters
_MAX_JOURNAL: Final = 64 * 1024 * 1024


def read(files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    store = WebUiStore(files)
    files.total = sum(map(files.size, store.session_names)) * (2 if len(store.session_names) > 1 else 1)
    parents = store.read_parents()
    continued = set(parents.values())
    for name in store.session_names:
        for place, item in store.read_sessions(name):
            sid = text(item.get("session_id"))
            if not sid or "messages" not in item:
                skip(text(item.get("title")) or place, "it is not a session of Hermes WebUI")
            elif sid not in continued:  # else a later session includes this one
                yield store.build(item, place, skip, earlier=store.read_ancestors(sid, parents))


class WebUiStore:
    """The files of the state directory, wherever it begins in a directory or an archive."""

    def __init__(self, files: SourceFiles) -> None:
        self._files = files
        index = {name.rpartition("/")[2]: name for name in files.names}
        self._projects = _read_projects(files, index.get("projects.json"))
        self._journals = {tuple(name.split("/")[-3:]): name for name in files.names if "_run_journal/" in name}
        self._attachments: dict[str, dict[str, str]] = {}  # By name and directory
        for name in files.names:
            if "attachments/" in name:
                folder, base = name.split("/")[-2:]
                self._attachments.setdefault(base, {})[folder] = name
        self.session_names = self._find_sessions()
        self._by_id = {name.rpartition("/")[2].removesuffix(".json"): name for name in self.session_names}

    def _find_sessions(self) -> list[str]:
        """The session files: those in a directory `sessions`, or else every JSON file."""
        found = []
        for name in self._files.names:
            folder, _, base = name.rpartition("/")
            if _SESSION.match(base) and base not in _NOT_SESSIONS and not folder.rpartition("/")[2].startswith("_"):
                found.append(name)
        inside = [name for name in found if name.split("/")[-2:-1] == ["sessions"]]
        return inside or found or list(self._files.names)[:1]

    def has(self, sid: str) -> bool:
        return sid in self._by_id

    def read_session(self, sid: str) -> Object | None:
        name = self._by_id.get(sid)
        return None if name is None else next((item for _, item in self.read_sessions(name)), None)

    def read_sessions(self, name: str) -> Iterator[tuple[str, Object]]:
        yield from self._files.read_objects(name)

    def read_parents(self) -> Mapping[str, str]:
        """The predecessor of each session that continues another after a compaction. A fork has none."""
        parents: dict[str, str] = {}
        if len(self.session_names) < 2:
            return parents
        snapshots: set[str] = set()
        for name in self.session_names:
            for _, item in self.read_sessions(name):
                sid, parent = text(item.get("session_id")), text(item.get("parent_session_id"))
                if item.get("pre_compression_snapshot") is True and sid in self._by_id:
                    snapshots.add(sid)
                if 0 < len(sid) <= _MAX_ID and parent in self._by_id and parent != sid:
                    parents[sid] = parent
                if len(parents) > MAX_FILES:
                    raise InvalidInputError(self._files.shown_as, f"has more than {MAX_FILES} sessions")
        return {sid: parent for sid, parent in parents.items() if parent in snapshots}

    def read_ancestors(self, sid: str, parents: Mapping[str, str]) -> list[Object]:
        """The sessions before this one, the first one first. They are held together, so their size is bounded."""
        found: list[Object] = []
        seen, size = {sid}, 0
        while (sid := parents.get(sid, "")) and sid not in seen and sid in self._by_id:
            size += self._files.size(self._by_id[sid])
            if size > MAX_SESSION:
                raise InvalidInputError(
                    f"session {sid[:100]}", f"is larger than {size_text(MAX_SESSION)} with its beginning"
                )
            item = self.read_session(sid)
            if item is None:
                break
            seen.add(sid)
            found.append(
                {
                    "session_id": sid,
                    "created_at": seconds(item.get("created_at")),
                    "model": text(item.get("model")),
                    "messages": item.get("messages", []),
                }
            )
        return found[::-1]

    def build(
        self, item: Object, place: str, skip: Skip, *, app: str = APP, earlier: Sequence[Object] = ()
    ) -> SessionBuilder:
        first = earlier[0] if earlier else item
        oid = require_text(first.get("session_id"), f"{place}, field session_id")
        builder = SessionBuilder(
            app,
            oid,
            skip,
            self._files.check,
            self._files.scratch,
            title=text(item.get("title")),
            created_at=seconds(first.get("created_at")),
        )
        self.add_flags(builder, item)
        notes: list[RowNote] = []
        anchor = text(item.get("compression_anchor_summary"))
        if len(anchor) * len(earlier) > MAX_SESSION:
            raise InvalidInputError(
                f"{place}, field compression_anchor_summary", "is too long for its number of compactions"
            )
        for session in (*earlier, item):
            summary = anchor if notes else ""
            if summary:
                notes += note_rows([ChatRow("assistant", f"[CONTEXT SUMMARY]:\n{summary}")])
            new = note_rows(self._rows(session, place))
            if notes and new and not summary:
                new[0].begins_segment = True
            notes += new
        sids = [text(session.get("session_id")) for session in (*earlier, item)]
        reader = RowReader(builder, self.attachments(builder, sids))
        reader.add_all(note.row() for note in join_segments(notes))
        self.add_pending(reader, item, notes)
        return builder

    def add_flags(self, builder: SessionBuilder, item: Object) -> None:
        builder.pinned, builder.archived = item.get("pinned") is True, item.get("archived") is True
        builder.project = self._projects.get(text(item.get("project_id")))

    def _rows(self, item: Object, place: str) -> RowSource:
        model = text(item.get("model"))
        return StoredRows(
            require_list(item.get("messages", []), f"{place}, field messages"),
            lambda message, n: _row(require_object(message, f"{place}, field messages.{n}"), model),
        )

    def add_pending(self, reader: RowReader, item: Object, notes: Sequence[RowNote]) -> None:
        """Adds a turn that was not answered: its question, if the file keeps it outside the messages, and the part of
        the answer that the page had shown."""
        question, at = text(item.get("pending_user_message")), seconds(item.get("pending_started_at"))
        if question.strip() and _last_question(notes) != question.strip():
            files = objects(item.get("pending_attachments"))
            reader.add_all([ChatRow("user", question, at, attachments=files)])
        if reader.last == "user":
            reader.add_interrupted(
                self.read_journal(text(item.get("session_id")), text(item.get("active_stream_id"))), at
            )

    def read_journal(self, sid: str, stream: str) -> AnswerParts:
        """What the run journal shows of an answer. Its last line may be cut off."""
        name = self._journals.get(("_run_journal", sid, f"{stream}.jsonl")) if stream else None
        data = None if name is None else self._files.read(name, _MAX_JOURNAL)
        return _read_journal(data or b"", self._files.check)

    def attachments(self, builder: SessionBuilder, sids: Iterable[str]) -> AddFile:
        """Adds files of these sessions. Each name is looked up once: a chat can have many files in many directories."""
        order = {sid: n for n, sid in reversed(list(enumerate(sids)))}
        find = cache(partial(self._find_attachment, order))
        return partial(self._add_attachment, builder, find)

    def _find_attachment(self, order: Mapping[str, int], name: str) -> tuple[int, str]:
        """The first of the sessions that has a file of this name, and the file; it is empty if none has."""
        found = [(order[sid], member) for sid, member in self._attachments.get(name, {}).items() if sid in order]
        return min(found, default=(len(order), ""))

    def _add_attachment(
        self, builder: SessionBuilder, find: Callable[[str], tuple[int, str]], item: Object
    ) -> FilePart:
        """A file of the sessions' own attachment directories: paths elsewhere are never opened."""
        name = (text(item.get("name")) or text(item.get("filename")) or text(item.get("path")) or "file").replace(
            "\\", "/"
        )
        stored = text(item.get("path")).replace("\\", "/").rpartition("/")[2] or name
        kind, size = text(item.get("mime")), item.get("size")
        name = name.rpartition("/")[2]
        member = min(find(stored), find(name), key=itemgetter(0))[1]
        if not member:
            return builder.add_missing_file(name, kind, size if type(size) is int else 0, stored)
        return builder.add_file(
            name, kind, self._files.size(member), partial(self._files.read, member, MAX_FILE), stored
        )


def _last_question(notes: Sequence[RowNote]) -> str | None:
    rows = (note.source[note.n] for note in reversed(notes) if not note.rewound)
    return next((plain(row.content).strip() for row in rows if row.role == "user"), None)


def _read_projects(files: SourceFiles, name: str | None) -> Mapping[str, str]:
    if name is None:
        return {}
    with files.open(name) as stream:
        found = objects(read_document(stream, files.label(name)))
    return {text(item.get("project_id")) or text(item.get("id")): text(item.get("name")) for item in found}


def _row(message: Object, model: str) -> ChatRow:
    notice = plain(message.get("content")) if message.get("_error") is True else None
    ending: Ending = "complete"
    if notice is not None:
        ending = "interrupted" if message.get("type") == "interrupted" else "failed"
    elif message.get("_partial") is True:
        ending = "interrupted"
    calls = decode_calls(message.get("tool_calls"))
    if not calls:
        calls = [
            {"id": text(call.get("tid")), "function": {"name": call.get("name"), "arguments": call.get("args", {})}}
            for call in objects(message.get("_partial_tool_calls"))
        ]
    role = text(message.get("role"))
    return ChatRow(
        "system" if role == COMPACTION else role,
        message.get("content"),
        seconds(message.get("timestamp")) or seconds(message.get("_ts")),
        calls,
        text(message.get("tool_call_id")),
        text(message.get("name")),
        text(message.get("reasoning")) or text(message.get("reasoning_content")),
        text(message.get("_usedModel")) or model,
        objects(message.get("attachments")),
        ending,
        notice,
    )


def _read_journal(data: bytes, check: Callable[[], object]) -> AnswerParts:
    answer, said, thought = AnswerParts(), list[str](), list[str]()

    def flush() -> None:
        answer.add_reasoning("".join(thought))
        answer.add_text("".join(said))
        thought.clear()
        said.clear()

    for line in BytesIO(data):
        check()
        try:
            event = parse_json(line.decode())
        except ValueError:
            continue
        payload = event.get("payload") if isinstance(event, dict) else None
        if not isinstance(payload, dict):
            continue
        match event.get("event") or event.get("type"):
            case "token":
                said.append(text(payload.get("text")))
            case "reasoning":
                thought.append(
                    text(payload.get("text")) or text(payload.get("reasoning")) or text(payload.get("thinking"))
                )
            case "interim_assistant" if payload.get("already_streamed") is not True:
                said.append(text(payload.get("text")))
                flush()
            case "tool":
                flush()
                args = payload.get("args")
                answer.add_call("", text(payload.get("name")), bounded(args if isinstance(args, dict) else {}))
            case "tool_complete":
                failed = payload.get("is_error") is True
                answer.add_result("", text(payload.get("name")), text(payload.get("preview")), is_error=failed)
            case _:
                pass
    flush()
    return answer
