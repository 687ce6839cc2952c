"""Builds one session of another application as a section of our export format. What a second import adds:
`engine.transactions.imports.merge`.

A message's id is derived from what the application calls it (or from its parent, if it has no stable ids) and from what
it says. So a second import finds each message again, and one that changed meanwhile becomes another version of it.
"""

import hashlib
from array import array
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from holdfast.core.errors import InvalidInputError
from holdfast.core.events import Ending, Failure, Usage
from holdfast.core.export_format import CHUNK, EARLIEST, LATEST, ExportedFile, Origin
from holdfast.core.ids import LOCAL, FileId, MessageId, SessionId
from holdfast.core.parts import FilePart, Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.session import Compaction, Message, Role, Session
from holdfast.core.session_limits import (
    MAX_PARTS,
    MAX_SIBLINGS,
    MAX_STORED_INSTRUCTIONS,
    MAX_SUMMARIES,
    MAX_SUMMARY,
    MAX_TITLE,
)
from holdfast.core.size_text import size_text
from holdfast.engine import export_lines
from holdfast.engine.export_import import MAX_SESSION
from holdfast.importers.scratch import Scratch

MAX_MESSAGES: Final = 1_000_000
MAX_FILE: Final = 50 * 1024 * 1024  # Larger files of an export are left out
MAX_FILES: Final = 100_000  # Of one session, with or without content
_LONGEST_TITLE: Final = 10 * MAX_TITLE  # Characters that are looked at: words take much more memory than the text
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
    """`check` is called for each message; what it raises stops the import. Messages are kept in `scratch` as lines."""

    def __init__(
        self,
        app: str,
        origin_id: str,
        skip: Skip,
        check: Callable[[], object] = lambda: None,
        scratch: Scratch | None = None,
        *,
        title: str = "",
        created_at: float | None = None,
    ) -> None:
        self.origin = Origin(app, origin_id[:1000])
        self.head: MessageId | None = None  # The last message of the branch that is shown
        self.title = " ".join(title[:_LONGEST_TITLE].replace("\0", "").split())[:MAX_TITLE]
        self.system: str | None = None
        self.pinned = False
        self.archived = False
        self.tags: tuple[str, ...] = ()
        self.project: str | None = None
        self._skip = skip
        self._check = check
        self._size = 0
        self._created_at = created_at
        self._scratch = scratch or Scratch()
        self._messages: dict[MessageId, float] = {}  # When each was created
        self._places = array("Q")  # Of their lines
        self._newest_child: dict[MessageId | None, float] = {}
        self._siblings: Counter[MessageId | None] = Counter()  # The messages below each but the first
        self._compactions: dict[MessageId, Compaction] = {}
        self._summary_size = 0
        self._files: dict[FileId, AttachedFile] = {}
        self._contents: dict[str, int] = {}  # The places of contents, by digest

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
        if len(parts) > MAX_PARTS:
            raise InvalidInputError(self.label, f"has a message of more than {MAX_PARTS} parts")
        parts = [_without_nul(part) for part in parts]
        texts = [text for part in parts for text in _fingerprint(part)]
        size = sum(map(len, texts))
        self._grow(size)
        mid = MessageId(_digest(key or parent or "", role, *texts))
        self.head = mid
        if mid in self._messages:
            return mid
        if len(self._messages) >= MAX_MESSAGES:
            raise InvalidInputError(self.label, f"has more than {MAX_MESSAGES} messages")
        if parent in self._newest_child:
            self._siblings[parent] += 1
            if self._siblings[parent] >= MAX_SIBLINGS:
                raise InvalidInputError(self.label, f"has more than {MAX_SIBLINGS} answers to one message")
        if at is None:
            at = self._created_at or 0.0 if parent is None else self._messages[parent]
        at = max(min(max(at, EARLIEST), LATEST), self._newest_child.get(parent, EARLIEST) + _TICK)
        self._newest_child[parent] = self._messages[mid] = at
        message = Message(
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
        line = export_lines.write(message)
        self._grow(len(line) - size)
        self._places.append(self._scratch.add(line))
        return mid

    def _grow(self, size: int) -> None:
        """Branches can repeat a text many times."""
        self._size += size
        if self._size > MAX_SESSION:
            raise InvalidInputError(self.label, f"is larger than {size_text(MAX_SESSION)}")

    def add_compaction(self, mid: MessageId, summary: str, at: float | None = None) -> None:
        """The first compaction at a message stays. A summary that is too long is cut, and none is added to too many."""
        summary = summary.replace("\0", "")[:MAX_SUMMARY]
        if mid in self._compactions or self._summary_size + len(summary) > MAX_SUMMARIES:
            return
        self._summary_size += len(summary)
        at = self._messages[mid] if at is None else at
        self._compactions[mid] = Compaction(SessionId(""), LOCAL, mid, summary, at)

    def add_file(
        self, name: str, media_type: str, size: int, read: Callable[[], bytes | None], key: str = ""
    ) -> FilePart:
        """A part for a file whose content may be missing. `key` tells files with the same name apart."""
        fid = FileId(_digest("file", name, media_type, str(size), key))
        part = FilePart(fid, name or "file", media_type or "application/octet-stream", min(max(0, size), _LARGEST))
        if len(self._files) >= MAX_FILES and fid not in self._files:
            raise InvalidInputError(self.label, f"has more than {MAX_FILES} files")
        self._files.setdefault(fid, AttachedFile(part, read))
        return part

    def add_content(self, name: str, media_type: str, data: bytes) -> FilePart:
        """A part for a file whose content is inside the export."""
        digest = hashlib.sha256(data).hexdigest()
        place = self._contents.get(digest)
        if place is None:
            place = self._contents[digest] = self._scratch.add(data)
        return self.add_file(name, media_type, len(data), partial(self._scratch.read, place), digest)

    def add_missing_file(self, name: str, media_type: str = "", size: int = 0, key: str = "") -> FilePart:
        """A part for a file that the export names without its content."""
        return self.add_file(name, media_type, size, lambda: None, key)

    # ---- writing ----

    def lines(self) -> Iterator[bytes]:
        times = self._messages.values()
        created = self._created_at if self._created_at is not None else min(times)
        if self.system and len(self.system) > MAX_STORED_INSTRUCTIONS:
            self._skip(self.label, f"its instructions are longer than {MAX_STORED_INSTRUCTIONS} characters")
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
        for place in self._places:
            yield self._scratch.read(place)
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
            self._skip(f"File {part.name} of {self.label}", "not included in the export")
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
