"""Exported sessions: the export format `holdfast-session`, version 1 (docs/reference/export-format.md).

A section is one session: a first line, a line per message (parents first), compaction, file and chunk of a file's
content, and a last line with counts (`engine.export_lines`). Sections follow one another directly. Runs, journals and
idempotency keys are not exported: an imported message belongs to no run.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from holdfast.core.ids import FileId, MessageId, OwnerId, SessionId
from holdfast.core.parts import FilePart, Part
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


@dataclass(slots=True)
class ExportedSession:
    """One exported session, with the ids of the server or the application that it comes from."""

    session: Session
    origin: Origin | None = None
    messages: list[Message] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    files: dict[FileId, ExportedFile] = field(default_factory=dict)

    @property
    def source(self) -> Origin:
        """Its origin; of our own exports, the session that was exported."""
        return self.origin or Origin(_OWN_APP, self.session.id)


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


def with_derived_ids(
    section: ExportedSession, owner: OwnerId, files: Mapping[FileId, FilePart]
) -> tuple[Session, list[Message], list[Compaction]]:
    """The section with ids that are derived from its source, whether or not its own are in use here, in the order of
    the messages, and with the files as stored here."""
    origin = section.source
    sid = session_id(origin, owner)
    ids = {message.id: MessageId(derived_id("msg", sid, message.id)) for message in section.messages}
    head = None if section.session.head is None else ids[section.session.head]
    settings = {
        **(section.session.settings or {}),
        "origin": {"app": origin.app, "id": origin.id, "head": head},
    }
    redo = tuple(ids[mid] for mid in section.session.redo)
    session = replace(section.session, id=sid, owner=owner, head=head, redo=redo, settings=settings)
    messages = [
        replace(
            message,
            id=ids[message.id],
            owner=owner,
            session_id=sid,
            parent_id=None if message.parent_id is None else ids[message.parent_id],
            parts=tuple(_with_file(part, files) for part in message.parts),
        )
        for message in section.messages
    ]
    compactions = [
        replace(item, session_id=sid, owner=owner, message_id=ids[item.message_id]) for item in section.compactions
    ]
    return session, messages, compactions


def _with_file(part: Part, files: Mapping[FileId, FilePart]) -> Part:
    return replace(files[part.file_id], call_id=part.call_id) if isinstance(part, FilePart) else part
