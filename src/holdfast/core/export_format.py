"""Exported sessions: the export format `holdfast-session`, version 1 (docs/reference/export-format.md). As
Markdown: `core.markdown_export`; which messages are left out: `engine.export_import`.

A section is one session: a first line, a line per message (parents first), compaction, file and chunk of a file's
content, and a last line with counts (`engine.export_lines`). Sections follow one another directly. Runs, journals and
idempotency keys are not exported: an imported message belongs to no run.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from holdfast.core.ids import FileId, MessageId, OwnerId, SessionId
from holdfast.core.parts import FilePart, Json, Part
from holdfast.core.project import ProjectMemory
from holdfast.core.session import Compaction, Message, Session

FORMAT: Final = "holdfast-session"
VERSION: Final = 1
CHUNK: Final = 192 * 1024  # Bytes of file content per line


@dataclass(frozen=True, slots=True)
class Origin:
    """The conversation of another application that a session is a copy of. Ids are derived from it, so that a second
    import finds what the first one stored."""

    app: str
    id: str


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that messages refer to. `missing`: its content no longer existed when it was exported."""

    id: FileId
    name: str
    media_type: str
    size: int
    sha256: str
    missing: bool = False


@dataclass(frozen=True, slots=True)
class ExportedProject:
    """What an export of all sessions says of a project, besides its name, with the first of its sessions."""

    color: str | None
    instructions: str | None
    agent: str | None
    model: str | None
    settings: Json
    memory: ProjectMemory | None
    archived: bool
    files: Sequence[FileId] = ()


@dataclass(slots=True)
class ExportedSession:
    """One exported session without its messages, which are too large to be held together, with the ids of the server or
    the application that it comes from."""

    session: Session
    origin: Origin | None = None  # As it says
    is_converted: bool = False  # One of our readers has written it, so the origin is true
    project: ExportedProject | None = None
    message_ids: dict[MessageId, int] = field(default_factory=dict)
    """In the order of the messages, each with the number of messages below it."""
    compactions: list[Compaction] = field(default_factory=list)
    files: dict[FileId, ExportedFile] = field(default_factory=dict)

    @property
    def copied_from(self) -> Origin | None:
        """The origin, unless it is only a claim: whoever wrote a file could otherwise join chats that are none of its
        business, here or in the application."""
        return self.origin if self.is_converted else None

    @property
    def source(self) -> Origin:
        """Its origin; of our own exports, the session that was exported."""
        return self.copied_from or Origin(_OWN_APP, self.session.id)


_OWN_APP: Final = "holdfast"
EARLIEST: Final = -62_135_596_800.0  # The first second of year 1 and the last of year 9999
LATEST: Final = 253_402_300_799.0


def iso_timestamp(at: float) -> str:
    """A time that no calendar has, which an import could once bring in, becomes the nearest one that does."""
    return (
        datetime.fromtimestamp(min(max(at, EARLIEST), LATEST), UTC)
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z")
    )


def nearest_settled(mid: MessageId | None, unsettled: Mapping[MessageId, MessageId | None]) -> MessageId | None:
    """The nearest settled message from `mid` towards the root; `unsettled` maps each unsettled one to its parent."""
    while mid is not None and mid in unsettled:
        mid = unsettled[mid]
    return mid


def derived_id(kind: str, *names: str) -> str:
    """An id that is always the same for the same names, as long as other ids."""
    return f"{kind}_{hashlib.sha256(chr(0).join(names).encode('utf-8', 'replace')).hexdigest()[:26]}"


def session_id(origin: Origin, owner: OwnerId) -> SessionId:
    return SessionId(derived_id("ses", owner, "import", origin.app, origin.id))


def file_id(origin: Origin, owner: OwnerId, fid: FileId) -> FileId:
    return FileId(derived_id("file", session_id(origin, owner), fid))


class DerivedIds:
    """Gives what a section contains ids that are derived from its source, whether or not its own are in use here."""

    def __init__(self, source: Origin, owner: OwnerId) -> None:
        self.session_id = session_id(source, owner)
        self._source = source
        self._owner = owner

    def message_id(self, mid: MessageId) -> MessageId:
        return MessageId(derived_id("msg", self.session_id, mid))

    def session(self, session: Session) -> Session:
        head = self._optional(session.head)
        origin = {"app": self._source.app, "id": self._source.id, "head": head}
        settings = {**(session.settings or {}), "origin": origin}
        redo = tuple(map(self.message_id, session.redo))
        return replace(session, id=self.session_id, owner=self._owner, head=head, redo=redo, settings=settings)

    def message(self, message: Message, files: Mapping[FileId, FilePart]) -> Message:
        """With its files as stored here."""
        return replace(
            message,
            id=self.message_id(message.id),
            owner=self._owner,
            session_id=self.session_id,
            parent_id=self._optional(message.parent_id),
            parts=tuple([_with_file(part, files) for part in message.parts]),
        )

    def compaction(self, item: Compaction) -> Compaction:
        mid = self.message_id(item.message_id)
        return replace(item, session_id=self.session_id, owner=self._owner, message_id=mid)

    def _optional(self, mid: MessageId | None) -> MessageId | None:
        return None if mid is None else self.message_id(mid)


def _with_file(part: Part, files: Mapping[FileId, FilePart]) -> Part:
    return replace(files[part.file_id], call_id=part.call_id) if isinstance(part, FilePart) else part
