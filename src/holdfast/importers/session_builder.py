"""Builds one session of another application as a section of our export format.

A message's id is derived from what the application calls it (or from its parent, if it has no stable ids) and from what
it says. So a second import finds each message again, and one that changed meanwhile becomes another version of it.
"""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from holdfast.core.errors import InvalidInputError
from holdfast.core.events import Ending, Failure, Usage
from holdfast.core.export_format import CHUNK, EARLIEST, LATEST, ExportedFile, Origin
from holdfast.core.ids import LOCAL, FileId, MessageId, SessionId
from holdfast.core.parts import FilePart, Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.session import Compaction, Message, Role, Session
from holdfast.core.session_limits import MAX_STORED_TEXT, MAX_TITLE
from holdfast.engine import export_lines
from holdfast.engine.transfer import MAX_SESSION

MAX_MESSAGES: Final = 1_000_000
MAX_FILE: Final = 50 * 1024 * 1024  # Larger files of an export are left out
_LARGEST: Final = 2**53
_TICK: Final = 1e-6  # Seconds between versions of a message, so that their order is kept

Skip = Callable[[str, str], None]
"""Reports an item that is left out, and why."""


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """`read` returns the content, or None if there is none; it is called when the file is written."""

    part: FilePart
    read: Callable[[], bytes | None]


class SessionBuilder:
    """`check` is called for each message; what it raises stops the import."""

    def __init__(
        self,
        app: str,
        origin_id: str,
        skip: Skip,
        check: Callable[[], object] = lambda: None,
        *,
        title: str = "",
        created_at: float | None = None,
    ) -> None:
        self.origin = Origin(app, origin_id[:1000])
        self.head: MessageId | None = None
        self.title = " ".join(title.replace("\0", "").split())[:MAX_TITLE]
        self.system: str | None = None
        self.pinned = False
        self.archived = False
        self.tags: tuple[str, ...] = ()
        self.project: str | None = None
        self._skip = skip
        self._check = check
        self._size = 0
        self._created_at = created_at
        self._messages: dict[MessageId, Message] = {}
        self._newest_child: dict[MessageId | None, float] = {}
        self._compactions: dict[MessageId, Compaction] = {}
        self._files: dict[FileId, AttachedFile] = {}

    @property
    def label(self) -> str:
        return f"{self.title or 'Untitled chat'} ({self.origin.id})"

    @property
    def is_empty(self) -> bool:
        return not self._messages

    def __contains__(self, mid: MessageId) -> bool:
        return mid in self._messages

    # ---- adding ----

    def add(
        self,
        role: Role,
        parent: MessageId | None,
        parts: Sequence[Part],
        *,
        key: str | None = None,
        at: float | None = None,
        status: Ending = "complete",
        error: Failure | None = None,
        model: str | None = None,
        usage: Usage | None = None,
    ) -> MessageId:
        """Adds a message below `parent` and makes it the head. The same message again is the one already there."""
        self._check()
        parts = [_without_nul(part) for part in parts]
        texts = [text for part in parts for text in _fingerprint(part)]
        self._size += sum(map(len, texts))
        if self._size > MAX_SESSION:  # branches can repeat a text many times
            raise InvalidInputError(self.label, f"is larger than {MAX_SESSION} bytes")
        mid = MessageId(_digest(key or parent or "", role, *texts))
        self.head = mid
        if mid in self._messages:
            return mid
        if len(self._messages) >= MAX_MESSAGES:
            raise InvalidInputError(self.label, f"has more than {MAX_MESSAGES} messages")
        if at is None:
            at = self._created_at or 0.0 if parent is None else self._messages[parent].created_at
        at = max(min(max(at, EARLIEST), LATEST), self._newest_child.get(parent, EARLIEST) + _TICK)
        self._newest_child[parent] = at
        self._messages[mid] = Message(
            mid,
            LOCAL,
            SessionId(""),
            role,
            parent,
            at,
            status=status,
            parts=tuple(parts),
            error=error,
            model=model or None,
            usage=usage,
        )
        return mid

    def mark(self, mid: MessageId, status: Ending) -> None:
        self._messages[mid] = replace(self._messages[mid], status=status)

    def add_compaction(self, mid: MessageId, summary: str, at: float | None = None) -> None:
        """The first compaction at a message stays."""
        if mid not in self._compactions:
            at = self._messages[mid].created_at if at is None else at
            self._compactions[mid] = Compaction(SessionId(""), LOCAL, mid, summary.replace("\0", ""), at)

    def add_file(
        self, name: str, media_type: str, size: int, read: Callable[[], bytes | None], key: str = ""
    ) -> FilePart:
        """A part for a file whose content may be missing. `key` tells files with the same name apart."""
        fid = FileId(_digest("file", name, media_type, str(size), key))
        part = FilePart(fid, name or "file", media_type or "application/octet-stream", min(max(0, size), _LARGEST))
        self._files.setdefault(fid, AttachedFile(part, read))
        return part

    def add_content(self, name: str, media_type: str, data: bytes) -> FilePart:
        """A part for a file whose content is inside the export."""
        return self.add_file(name, media_type, len(data), lambda: data, hashlib.sha256(data).hexdigest())

    def add_missing_file(self, name: str, media_type: str = "", size: int = 0, key: str = "") -> FilePart:
        """A part for a file that the export names without its content."""
        return self.add_file(name, media_type, size, lambda: None, key)

    # ---- writing ----

    def lines(self) -> Iterator[bytes]:
        times = [message.created_at for message in self._messages.values()]
        created = self._created_at if self._created_at is not None else min(times)
        if self.system and len(self.system) > MAX_STORED_TEXT:
            self._skip(self.label, f"its instructions are longer than {MAX_STORED_TEXT} characters")
            self.system = None
        session = Session(
            SessionId("session"),
            LOCAL,
            min(max(created, EARLIEST), LATEST),
            max(times),
            title=self.title,
            titled_by="person" if self.title else "nobody",
            system=self.system or None,
            pinned=self.pinned,
            archived=self.archived,
            tags=self.tags,
            project=self.project or None,
            head=self.head,
        )
        yield export_lines.write(session, self.origin)
        for message in self._messages.values():
            yield export_lines.write(message)
        for compaction in self._compactions.values():
            yield export_lines.write(compaction)
        for file in self._files.values():
            yield from self._file_lines(file)
        yield export_lines.write_line(
            "end", messages=len(self._messages), compactions=len(self._compactions), files=len(self._files)
        )

    def _file_lines(self, file: AttachedFile) -> Iterator[bytes]:
        part = file.part
        data = file.read()
        if not data:
            self._skip(f"File {part.name} of {self.label}", "the export does not have its content")
            yield export_lines.write(
                ExportedFile(part.file_id, part.name, part.media_type, part.size, "", missing=True)
            )
            return
        digest = hashlib.sha256(data).hexdigest()
        yield export_lines.write(ExportedFile(part.file_id, part.name, part.media_type, len(data), digest))
        for at in range(0, len(data), CHUNK):
            yield export_lines.write_line("content", data=b64encode(data[at : at + CHUNK]).decode("ascii"))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:32]


def _fingerprint(part: Part) -> tuple[str, ...]:
    """What identifies a part in the digest of its message. Other fields are left out, because a later version of the
    importer may read more of them."""
    match part:
        case TextPart(text=text):
            return (text,)
        case ToolPart(call_id=call_id, name=name, state=state):
            return (call_id, name, state)
        case FilePart(name=name):
            return (name,)
        case _:
            return ()


def _without_nul(part: Part) -> Part:
    """Databases refuse the character NUL in text."""
    if isinstance(part, TextPart | ReasoningPart) and "\0" in part.text:
        return replace(part, text=part.text.replace("\0", "�"))
    return part
