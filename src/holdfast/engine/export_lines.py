"""The lines of the export format (`core.export_format`): one model for each, which both writes and reads it. Every
error of the reader names the line and the field. Messages and contents of files pass through: it holds the ids of one
session at a time."""

import hashlib
import json
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import from_json, to_json

from holdfast.core import parts
from holdfast.core.errors import InvalidInputError
from holdfast.core.events import Ending, Failure, Usage
from holdfast.core.export_format import (
    EARLIEST,
    FORMAT,
    LATEST,
    VERSION,
    ExportedFile,
    ExportedProject,
    ExportedSession,
    Origin,
    iso_timestamp,
)
from holdfast.core.finite_numbers import find_non_finite
from holdfast.core.ids import FileId, MessageId, OwnerId, SessionId
from holdfast.core.json_limits import STEP, has_more_values, search_in_steps
from holdfast.core.parts import FilePart, MissingFile, Part
from holdfast.core.personas import MAX_EMOJI
from holdfast.core.personas import MAX_NAME as MAX_PERSONA_NAME
from holdfast.core.project import MAX_FILES, MAX_INSTRUCTIONS, ProjectColor, ProjectMemory
from holdfast.core.session import Compaction, Message, Role, Session
from holdfast.core.session_limits import (
    MAX_ERROR,
    MAX_ID,
    MAX_LABEL,
    MAX_NAME,
    MAX_PARTS,
    MAX_REDO,
    MAX_SIBLINGS,
    MAX_STORED_INSTRUCTIONS,
    MAX_STORED_NAME,
    MAX_STORED_SETTING_FIELDS,
    MAX_STORED_SETTINGS,
    MAX_SUMMARIES,
    MAX_SUMMARY,
    MAX_TAG,
    MAX_TAGS,
    MAX_TITLE,
    unique_tags,
)
from holdfast.core.validation_text import validation_text

_NO_OWNER: Final = OwnerId("")
_LARGEST: Final = 2**53
_MAX_VALUES: Final = 500_000  # Of a line. Nothing else of the process runs while one is parsed

# ---- the lines ----


def _seconds(value: Any) -> Any:
    """Seconds since the epoch, of an ISO 8601 time."""
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is not None and EARLIEST <= at.timestamp() <= LATEST:
            return at.timestamp()
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError("expected a time such as 2026-01-31T12:00:00Z")


T = TypeVar("T")
Time = Annotated[float, BeforeValidator(_seconds)]
Count = Annotated[int, Field(ge=0, le=_LARGEST)]
Items = Annotated[list[T], Field(fail_fast=True)]  # Pydantic would describe every wrong item, in gigabytes


def _cut(longest: int) -> BeforeValidator:
    """Shortens what only describes: earlier versions stored it at any length."""
    return BeforeValidator(lambda value: value[:longest] if isinstance(value, str) else value)


def _cut_tags(tags: list[str]) -> list[str]:
    return unique_tags(tag[:MAX_TAG] for tag in tags if tag)[:MAX_TAGS]


def _check_settings(settings: dict[str, Any]) -> dict[str, Any]:
    if len(to_json(settings)) > MAX_STORED_SETTINGS:
        raise ValueError(f"must have at most {MAX_STORED_SETTINGS} bytes as JSON")
    return settings


Name = Annotated[str, Field(max_length=MAX_STORED_NAME)]
Label = Annotated[str, _cut(MAX_LABEL)]
Settings = Annotated[dict[str, Any], Field(max_length=MAX_STORED_SETTING_FIELDS), AfterValidator(_check_settings)]


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)


class _ProjectDetails(_Line):
    """Of a session's project."""

    color: ProjectColor | None = None
    instructions: Annotated[str, Field(max_length=MAX_INSTRUCTIONS)] | None = None
    agent: Name | None = None
    model: Name | None = None
    settings: Settings | None = None
    memory: ProjectMemory | None = None
    archived: bool = False
    files: Annotated[Items[FileId], Field(max_length=MAX_FILES)] = Field(default_factory=list)


class _SessionLine(_Line):
    id: Annotated[SessionId, Field(max_length=MAX_ID)]
    title: Annotated[str, Field(max_length=MAX_TITLE)]
    titled_by: Literal["nobody", "model", "person"]
    agent: Name
    model: Name | None
    system: Annotated[str, Field(max_length=MAX_STORED_INSTRUCTIONS)] | None
    settings: Settings | None = None
    pinned: bool
    archived: bool
    tags: Annotated[Items[str], AfterValidator(_cut_tags)]
    project: Annotated[str, _cut(MAX_NAME)] | None
    head: MessageId | None
    redo: Annotated[Items[MessageId], AfterValidator(lambda redo: redo[-MAX_REDO:])]
    created_at: Time
    updated_at: Time

    def session(self) -> Session:
        fields = {**dict(self), "agent": self.agent or "chat", "tags": tuple(self.tags), "redo": tuple(self.redo)}
        return Session(owner=_NO_OWNER, **fields)


class _Origin(_Line):
    app: Annotated[str, Field(min_length=1, max_length=100)]
    id: Annotated[str, Field(min_length=1, max_length=1000)]


class _Failure(_Line):
    code: Label
    message: Annotated[str, _cut(MAX_ERROR)]


class _Usage(_Line):
    input_tokens: Count
    output_tokens: Count
    cost: Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)] | None


class _Persona(_Line):
    """Who answered. Pictures are not exported."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_PERSONA_NAME)]
    emoji: Annotated[str, Field(max_length=MAX_EMOJI)] | None = None


class _MessageLine(_Line):
    id: MessageId
    parent_id: MessageId | None
    role: Role
    status: Ending
    reason: Label | None
    model: Label | None
    parts: Annotated[Items[dict[str, Any]], Field(max_length=MAX_PARTS)]
    error: _Failure | None = None
    recovery: Literal["recovered", "none"] | None = None
    usage: _Usage | None = None
    persona: _Persona | None = None
    created_at: Time

    def message(self, sid: SessionId) -> Message:
        fields = {
            **dict(self),
            "parts": tuple(_read_part(part, f"parts.{n}") for n, part in enumerate(self.parts)),
            "error": None if self.error is None else Failure(**dict(self.error)),
            "usage": None if self.usage is None else Usage(**dict(self.usage)),
            "persona": None if self.persona is None else self.persona.model_dump(exclude_none=True),
        }
        return Message(owner=_NO_OWNER, session_id=sid, **fields)


class _CompactionLine(_Line):
    message_id: MessageId
    summary: Annotated[str, Field(max_length=MAX_SUMMARY)]
    created_at: Time


class _FileLine(_Line):
    id: FileId
    name: str
    media_type: str
    size: Count
    sha256: str
    missing: bool


class _ContentLine(_Line):
    data: str


class _EndLine(_Line):
    messages: Count
    compactions: Count
    files: Count


_MODELS: Final[Mapping[type[Any], tuple[str, type[_Line]]]] = {
    Session: ("session", _SessionLine),
    Message: ("message", _MessageLine),
    Compaction: ("compaction", _CompactionLine),
    ExportedFile: ("file", _FileLine),
}


def write(
    value: Session | Message | Compaction | ExportedFile,
    origin: Origin | None = None,
    project: ExportedProject | None = None,
) -> bytes:
    """The line of a value: the fields that its model has, the origin of a session from another application, and what
    is said of its project."""
    kind, model = _MODELS[type(value)]
    fields = {name: getattr(value, name) for name in model.model_fields}
    times = {name: iso_timestamp(at) for name, at in fields.items() if name.endswith("_at")}
    first: dict[str, Any] = {"format": FORMAT, "version": VERSION} if kind == "session" else {}
    if origin is not None:
        first["origin"] = asdict(origin)
    if project is not None:
        first["project_details"] = asdict(project)
    return write_line(kind, **first, **fields | times)


def write_line(kind: str, **fields: Any) -> bytes:
    return f"{_encoder.encode({'type': kind, **fields})}\n".encode("utf-8", "replace")


def _to_json(value: Part | Failure | Usage) -> dict[str, Any]:
    return asdict(value) if isinstance(value, Failure | Usage) else parts.to_json(value)


_encoder: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_to_json)


class _TextPart(_Line):
    text: str
    begins_step: bool | None = None


class _ReasoningPart(_Line):
    text: str
    provider: Any = None
    duration_ms: Count | None = None
    begins_step: bool | None = None


class _ToolPart(_Line):
    call_id: str
    name: str
    args: Any
    state: Literal["done", "denied", "unknown", "not_run"]
    result: Any = None
    is_error: bool = False
    output: str = ""
    duration_ms: Count | None = None
    provider: Any = None
    may_have_run: bool = False
    args_text: str | None = None
    begins_step: bool | None = None


class _FilePart(_Line):
    file_id: str
    name: str
    media_type: str
    size: Count
    call_id: str | None = None
    missing: MissingFile | None = None


class _RememberedPart(_Line):
    items: Items[dict[str, Any]]
    note: str | None = None


class _PlanEntry(_Line):
    content: str
    status: Literal["pending", "in_progress", "completed"]
    priority: str | None = None


class _PlanPart(_Line):
    entries: Items[_PlanEntry]


class _SteeredPart(_Line):
    id: str
    text: str


_PARTS: Final[Mapping[str, type[_Line]]] = {
    "text": _TextPart,
    "reasoning": _ReasoningPart,
    "tool": _ToolPart,
    "file": _FilePart,
    "remembered": _RememberedPart,
    "plan": _PlanPart,
    "steered": _SteeredPart,
}


def _read_part(data: Mapping[str, Any], place: str) -> Part:
    kind = data.get("type")
    if not isinstance(kind, str) or kind not in _PARTS:
        raise InvalidInputError(f"{place}.type", f"{kind!r} is unknown to this version; update Holdfast")
    # Only fields that were checked, so that every part can be shown. Checking is strict: it changes no value.
    checked = _validate(_PARTS[kind], data, f"{place}.").model_fields_set
    part = parts.from_json({"type": kind, **{name: data[name] for name in checked}})
    assert part is not None
    return part


L = TypeVar("L", bound=_Line)


def _validate(model: type[L], data: Mapping[str, Any], prefix: str = "") -> L:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = prefix + ".".join(str(step) for step in first["loc"])
        raise InvalidInputError(field, validation_text(first)) from None


# ---- the reader ----


@dataclass(frozen=True, slots=True)
class FileChunk:
    file: ExportedFile
    data: bytes
    last: bool


ImportStep = Message | ExportedFile | FileChunk | ExportedSession | None
"""What a line completes: a message, a file's description, a piece of its content, a session, or nothing yet."""

# The types that the next line may have, by where the reader is.
_BETWEEN_SESSIONS: Final = frozenset({"session"})
_IN_SESSION: Final = frozenset({"message", "compaction", "file", "end"})
_IN_FILE: Final = frozenset({"content"})
_FORMAT_FIELD: Final = b'"holdfast-session"'
_LARGE_NUMBER: Final = re.compile(rb"[0-9][eE][+-]?[0-9]{2}|[0-9]{200}")  # What every infinite number looks like


class ImportReader:
    """`converted`: the lines are not a person's file, but what one of our readers has made of it."""

    def __init__(self, *, converted: bool = False) -> None:
        self.lines = 0
        self._converted = converted
        self._expected = _BETWEEN_SESSIONS
        self._section: ExportedSession | None = None
        self._named_files: dict[FileId, MessageId] = {}  # Files of messages, each with the first of them
        self._roots = 0
        self._summarized: set[MessageId] = set()
        self._summary_size = 0
        self._file: ExportedFile | None = None
        self._missing_bytes = 0
        self._hash = hashlib.sha256()

    def read(self, text: bytes) -> ImportStep:
        """Reads the next line, given without its line break. Raises InvalidInputError."""
        self.lines += 1
        try:
            return self._read(_parse(text))
        except InvalidInputError as error:
            problem = str(error) if error.field else error.problem
            why = problem if error.field else f"it {problem}"
            if self.lines == 1 and _FORMAT_FIELD not in text:
                problem = (
                    f"this is not a Holdfast export ({why}). Import the .jsonl file that `holdfast export` or "
                    "Settings > Data made; for other applications see the documentation on importing chats."
                )
            raise InvalidInputError(f"line {self.lines}", problem) from None

    def finish(self) -> None:
        """Call after the last line. Raises InvalidInputError if the export is incomplete."""
        if self._expected is not _BETWEEN_SESSIONS:
            raise InvalidInputError(f"line {self.lines}", "the file ends in the middle of a session")

    def _read(self, data: Mapping[str, Any]) -> ImportStep:
        kind = data.get("type")
        if not isinstance(kind, str) or kind not in self._expected:
            raise InvalidInputError(
                "type",
                f"is {'missing' if kind is None else repr(kind)}; expected {' or '.join(sorted(self._expected))}",
            )
        match kind:
            case "session":
                read = _read_session(data), _read_origin(data), self._converted, _read_project(data)
                self._section = ExportedSession(*read)
                self._named_files, self._expected = {}, _IN_SESSION
                self._roots, self._summarized, self._summary_size = 0, set(), 0
            case "message":
                return self._add_message(_validate(_MessageLine, data).message(self.section.session.id))
            case "compaction":
                self._add_compaction(_validate(_CompactionLine, data))
            case "file":
                return self._start_file(_validate(_FileLine, data))
            case "content":
                return self._add_content(_validate(_ContentLine, data))
            case _:
                return self._end(_validate(_EndLine, data))
        return None

    @property
    def section(self) -> ExportedSession:
        """What has been read of the current session. There must be one."""
        assert self._section is not None
        return self._section

    def _add_message(self, message: Message) -> Message:
        known = self.section.message_ids
        if message.id in known:
            raise InvalidInputError("id", f"{message.id!r} appears twice")
        if message.parent_id is not None and message.parent_id not in known:
            raise InvalidInputError("parent_id", f"{message.parent_id!r} is not an earlier message of this session")
        self._count_sibling(message.parent_id)
        known[message.id] = 0
        for part in message.parts:
            if isinstance(part, FilePart):
                self._named_files.setdefault(part.file_id, message.id)
        return message

    def _count_sibling(self, parent: MessageId | None) -> None:
        if parent is None:
            self._roots += 1
            count = self._roots
        else:
            count = self.section.message_ids[parent] = self.section.message_ids[parent] + 1
        if count > MAX_SIBLINGS:
            place = "at the beginning" if parent is None else f"below {parent!r}"
            raise InvalidInputError("parent_id", f"there are more than {MAX_SIBLINGS:,} messages {place}")

    def _add_compaction(self, line: _CompactionLine) -> None:
        self._check_message_id(line.message_id, "message_id")
        if line.message_id in self._summarized:
            raise InvalidInputError("message_id", f"{line.message_id!r} has more than one summary")
        self._summarized.add(line.message_id)
        self._summary_size += len(line.summary)
        if self._summary_size > MAX_SUMMARIES:
            raise InvalidInputError("summary", f"the session has more than {MAX_SUMMARIES:,} characters of summaries")
        sid = self.section.session.id
        self.section.compactions.append(Compaction(sid, _NO_OWNER, line.message_id, line.summary, line.created_at))

    def _check_message_id(self, mid: MessageId, field: str) -> None:
        if mid not in self.section.message_ids:
            raise InvalidInputError(field, f"{mid!r} is not a message of this session")

    def _start_file(self, line: _FileLine) -> ImportStep:
        if line.id in self.section.files:
            raise InvalidInputError("id", f"{line.id!r} appears twice")
        file = ExportedFile(**dict(line))
        self.section.files[file.id] = file
        if not file.missing:
            if not file.size:
                raise InvalidInputError("size", "must not be 0")
            self._file, self._missing_bytes, self._hash = file, file.size, hashlib.sha256()
            self._expected = _IN_FILE
        return file

    def _add_content(self, line: _ContentLine) -> ImportStep:
        try:
            data = b64decode(line.data, validate=True)
        except (Base64Error, ValueError):
            raise InvalidInputError("data", "is not valid base64") from None
        if not data or len(data) > self._missing_bytes:
            raise InvalidInputError("data", f"has {len(data)} bytes; the file lacks {self._missing_bytes}")
        self._hash.update(data)
        self._missing_bytes -= len(data)
        assert self._file is not None
        if self._missing_bytes:
            return FileChunk(self._file, data, last=False)
        if self._hash.hexdigest() != self._file.sha256:
            raise InvalidInputError("data", f"the content of file {self._file.id!r} does not match its checksum")
        self._expected = _IN_SESSION
        return FileChunk(self._file, data, last=True)

    def _end(self, line: _EndLine) -> ImportStep:
        section = self.section
        for name, stated, found in (
            ("messages", line.messages, len(section.message_ids)),
            ("compactions", line.compactions, len(section.compactions)),
            ("files", line.files, len(section.files)),
        ):
            if stated != found:
                raise InvalidInputError(name, f"expected {stated}, found {found}; lines are missing")
        for mid in (section.session.head, *section.session.redo):
            if mid is not None:
                self._check_message_id(mid, "head")
        for fid in () if section.project is None else section.project.files:
            if fid not in section.files:
                raise InvalidInputError("files", f"file {fid!r} of the project is not in the export")
        for fid, mid in self._named_files.items():
            if fid not in section.files:
                raise InvalidInputError("files", f"file {fid!r} of message {mid!r} is not in the export")
        self._expected = _BETWEEN_SESSIONS
        return section


def read_message(text: bytes) -> Message:
    """The message of a line that an `ImportReader` has accepted, without its session."""
    return _validate(_MessageLine, _parse(text)).message(SessionId(""))


def _parse(text: bytes) -> Mapping[str, Any]:
    if len(text) > STEP and has_more_values(text, _MAX_VALUES):
        counted = "each text, number, list and object counts as one"
        raise InvalidInputError("", f"has more than {_MAX_VALUES:,} values: {counted}")
    try:
        data = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        reason, _, column = (
            str(error)
            .replace("EOF while parsing", "the line ends inside")
            .replace("recursion limit exceeded", "it is nested too deeply")
            .partition(" at line 1 column ")
        )
        raise InvalidInputError("", f"is not valid JSON at byte {column}: {reason}") from None
    if not isinstance(data, dict):
        raise InvalidInputError("", "is not a JSON object")
    path = find_non_finite(data) if search_in_steps(_LARGE_NUMBER, text, 200) else None
    if path is not None:
        raise InvalidInputError(".".join(map(str, path)), "is not a finite number")
    return data


def _read_session(data: Mapping[str, Any]) -> Session:
    if data.get("format") != FORMAT:
        raise InvalidInputError("format", f"expected {FORMAT!r}; this is not a Holdfast export")
    if data.get("version") != VERSION:
        problem = (
            f"is {data.get('version', 'missing')}; this Holdfast reads version {VERSION}. Update it and import again"
        )
        raise InvalidInputError("version", problem)
    return _validate(_SessionLine, data).session()


def _read_origin(data: Mapping[str, Any]) -> Origin | None:
    origin = data.get("origin")
    if origin is None:
        return None
    if not isinstance(origin, dict):
        raise InvalidInputError("origin", "is not a JSON object")
    return Origin(**dict(_validate(_Origin, origin, "origin.")))


def _read_project(data: Mapping[str, Any]) -> ExportedProject | None:
    found = data.get("project_details")
    if found is None:
        return None
    if not isinstance(found, dict):
        raise InvalidInputError("project_details", "is not a JSON object")
    return ExportedProject(**dict(_validate(_ProjectDetails, found, "project_details.")))
