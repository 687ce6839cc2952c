"""Reading what `portable` writes. Whatever is wrong is an `Invalid` that names the line, and in it the place.

A reader is given one line after the other and says what each means for whoever keeps the contents. It holds the
messages of one section at a time; contents of files pass through.
"""

import hashlib
import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any, Final

from holdfast.core import fields as f
from holdfast.core.errors import Invalid
from holdfast.core.events import Failure, Usage
from holdfast.core.ids import FileId, MessageId, OwnerId, SessionId
from holdfast.core.parts import File, Part, from_json
from holdfast.core.portable import FORMAT, VERSION, FileNote, Section
from holdfast.core.run import RecoveryState
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.values import dataclass, replace

NOBODY: Final = OwnerId("")


@dataclass(frozen=True, slots=True)
class FileBegins:
    note: FileNote


@dataclass(frozen=True, slots=True)
class Content:
    data: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class Finished:
    section: Section


Meaning = FileBegins | Content | Finished | None

FOLLOWS: Final[Mapping[str, frozenset[str]]] = {
    "outside": frozenset({"session"}),
    "inside": frozenset({"message", "compaction", "file", "end"}),
    "in a file": frozenset({"content"}),
}


class Reader:
    def __init__(self) -> None:
        self.lines = 0
        self._state = "outside"
        self._section: Section | None = None
        self._known: set[MessageId] = set()
        self._file: FileNote | None = None
        self._left = 0
        self._hash = hashlib.sha256()

    def read(self, text: bytes) -> Meaning:
        """The next line, without its end."""
        self.lines += 1
        try:
            return self._read(f.table(_parsed(text)))
        except Invalid as error:
            raise Invalid(f"line {self.lines}", str(error) if error.field else error.problem) from None

    def finish(self) -> None:
        """After the last line."""
        if self._state != "outside":
            raise Invalid(f"line {self.lines}", "the file breaks off here: its last session has no end")

    def _read(self, data: Mapping[str, Any]) -> Meaning:
        kind = f.text(data, "type")
        expected = FOLLOWS[self._state]
        if kind not in expected:
            raise Invalid("type", f"is {kind!r}; expected {' or '.join(sorted(expected))}")
        match kind:
            case "session":
                self._section, self._known, self._state = Section(_session(data)), set(), "inside"
            case "message":
                self._add_message(data)
            case "compaction":
                self._add_compaction(data)
            case "file":
                return self._begin_file(data)
            case "content":
                return self._content(data)
            case _:
                return self._end(data)
        return None

    @property
    def _open(self) -> Section:
        assert self._section is not None
        return self._section

    def _add_message(self, data: Mapping[str, Any]) -> None:
        message = _message(data, self._open.session.id)
        if message.id in self._known:
            raise Invalid("id", f"{message.id!r} is there twice")
        if message.parent_id is not None and message.parent_id not in self._known:
            raise Invalid("parent_id", f"{message.parent_id!r} is not a message above this one")
        self._known.add(message.id)
        self._open.messages.append(message)

    def _add_compaction(self, data: Mapping[str, Any]) -> None:
        mid = MessageId(self._one_of_ours(f.text(data, "message_id"), "message_id"))
        summary, at = f.text(data, "summary"), f.moment(data, "created_at")
        self._open.compactions.append(Compaction(self._open.session.id, NOBODY, mid, summary, at))

    def _one_of_ours(self, mid: str, where: str) -> str:
        if mid not in self._known:
            raise Invalid(where, f"{mid!r} is not a message of this session")
        return mid

    def _begin_file(self, data: Mapping[str, Any]) -> Meaning:
        note = FileNote(
            FileId(f.text(data, "id")),
            f.text(data, "name"),
            f.text(data, "media_type"),
            f.whole(data, "size"),
            f.text(data, "sha256"),
            f.switch(data, "missing"),
        )
        if note.id in self._open.files:
            raise Invalid("id", f"{note.id!r} is there twice")
        self._open.files[note.id] = note
        if not note.missing:
            self._file, self._left, self._hash = note, note.size, hashlib.sha256()
            self._state = "in a file"
            if not note.size:
                raise Invalid("size", "is 0; an empty file has no content")
        return FileBegins(note)

    def _content(self, data: Mapping[str, Any]) -> Meaning:
        try:
            piece = b64decode(f.text(data, "data"), validate=True)
        except (NotBase64, ValueError):
            raise Invalid("data", "is not base64") from None
        if not piece or len(piece) > self._left:
            raise Invalid("data", f"{self._left} bytes are left of the file, here are {len(piece)}")
        self._hash.update(piece)
        self._left -= len(piece)
        assert self._file is not None
        if self._left:
            return Content(piece, last=False)
        if self._hash.hexdigest() != self._file.sha256:
            raise Invalid("data", f"the content of file {self._file.id!r} is not the one its checksum is of")
        self._state = "inside"
        return Content(piece, last=True)

    def _end(self, data: Mapping[str, Any]) -> Meaning:
        section = self._open
        for name, found in (
            ("messages", len(section.messages)),
            ("compactions", len(section.compactions)),
            ("files", len(section.files)),
        ):
            if f.whole(data, name) != found:
                raise Invalid(name, f"there are {found} of them, not {f.whole(data, name)}: lines are missing")
        for mid in (section.session.head, *section.session.redo):
            if mid is not None:
                self._one_of_ours(mid, "head")
        for message in section.messages:
            for part in message.parts:
                if isinstance(part, File) and part.file_id not in section.files:
                    raise Invalid("files", f"message {message.id!r} names file {part.file_id!r}, which is not there")
        self._state = "outside"
        return Finished(section)


def _parsed(text: bytes) -> Any:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise Invalid("", "is nested too deeply") from None
    except ValueError as error:
        raise Invalid("", f"is not JSON ({error})") from None


def _session(data: Mapping[str, Any]) -> Session:
    if data.get("format") != FORMAT:
        raise Invalid("format", f"expected {FORMAT!r}; this is not an export of Holdfast")
    if data.get("version") != VERSION:
        raise Invalid("version", f"is {data.get('version')!r}; this version reads {VERSION}. Take a newer Holdfast")
    head = f.text_or_none(data, "head")
    settings = data.get("settings")
    if settings is not None and not isinstance(settings, dict):
        raise Invalid("settings", "is neither an object nor null")
    return Session(
        SessionId(f.text(data, "id")),
        NOBODY,
        f.moment(data, "created_at"),
        f.moment(data, "updated_at"),
        title=f.text(data, "title"),
        titled_by=f.one_of(data, "titled_by", ("nobody", "model", "person")),
        agent=f.text(data, "agent") or "chat",
        model=f.text_or_none(data, "model"),
        system=f.text_or_none(data, "system"),
        settings=settings,
        pinned=f.switch(data, "pinned"),
        archived=f.switch(data, "archived"),
        tags=f.texts(data, "tags"),
        project=f.text_or_none(data, "project"),
        head=None if head is None else MessageId(head),
        redo=tuple(MessageId(mid) for mid in f.texts(data, "redo")),
    )


def _message(data: Mapping[str, Any], sid: SessionId) -> Message:
    parent = f.text_or_none(data, "parent_id")
    recovered: tuple[RecoveryState, ...] = ("recovered", "none")
    message = Message(
        MessageId(f.text(data, "id")),
        NOBODY,
        sid,
        f.one_of(data, "role", ("user", "assistant")),
        None if parent is None else MessageId(parent),
        f.moment(data, "created_at"),
        status=f.one_of(data, "status", ("complete", "cancelled", "failed", "interrupted")),
        parts=tuple(_part(item, f"parts.{n}") for n, item in enumerate(f.items(data, "parts"))),
        reason=f.text_or_none(data, "reason"),
        recovery=None if data.get("recovery") is None else f.one_of(data, "recovery", recovered),
        model=f.text_or_none(data, "model"),
    )
    if data.get("error") is not None:
        error = f.table(data["error"], "error")
        message = replace(message, error=Failure(f.text(error, "code"), f.text(error, "message")))
    if data.get("usage") is not None:
        usage = f.table(data["usage"], "usage")
        spent = Usage(f.whole(usage, "input_tokens"), f.whole(usage, "output_tokens"), f.number_or_none(usage, "cost"))
        message = replace(message, usage=spent)
    return message


def _part(item: Any, where: str) -> Part:
    data = f.table(item, where)
    try:
        _check_part(data)
    except Invalid as error:
        raise Invalid(f"{where}.{error.field}", error.problem) from None
    part = from_json(data)
    assert part is not None
    return part


def _check_part(data: Mapping[str, Any]) -> None:
    match data.get("type"):
        case "text" | "reasoning":
            f.text(data, "text")
        case "tool":
            for name in ("call_id", "name"):
                f.text(data, name)
            f.one_of(data, "state", ("done", "denied", "unknown", "not_run"))
            f.present(data, "args")
            f.switch({"is_error": False, **data}, "is_error")
            f.text({"output": "", **data}, "output")
            if data.get("duration_ms") is not None:
                f.whole(data, "duration_ms")
        case "file":
            for name in ("file_id", "name", "media_type"):
                f.text(data, name)
            f.whole(data, "size")
        case "remembered":
            for n, each in enumerate(f.items(data, "items")):
                f.table(each, f"items.{n}")
        case other:
            raise Invalid("type", f"{other!r} is not known to this version. Take a newer Holdfast")
