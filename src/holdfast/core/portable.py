"""A session as lines of JSON, to be kept or taken elsewhere: `holdfast-session`, version 1 (docs/export.md).

A section is a session: one line that begins it, a line for each message (above it those that it answers), compaction,
file and piece of a file's content, and one that ends it and counts. Sections may follow one another without anything
between them. Runs, journals and idempotency keys stay behind: a message that was taken in belongs to no run.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Final

from holdfast.core.ids import FileId, MessageId, OwnerId, SessionId
from holdfast.core.parts import File, Json, Part, all_to_json
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.values import dataclass, replace

FORMAT: Final = "holdfast-session"
VERSION: Final = 1
PIECE: Final = 192 * 1024
"""Bytes of a file in one line."""


@dataclass(frozen=True, slots=True)
class FileNote:
    """A file that messages name. `missing`: its content was not there any more when it was exported."""

    id: FileId
    name: str
    media_type: str
    size: int
    sha256: str
    missing: bool = False


@dataclass(slots=True)
class Section:
    """One session as it is read, with the ids it had where it comes from."""

    session: Session
    messages: list[Message] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    files: dict[FileId, FileNote] = field(default_factory=dict)


# ---- writing ----


def line(kind: str, **fields: Json) -> bytes:
    return (
        json.dumps({"type": kind, **fields}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        + b"\n"
    )


def session_line(session: Session) -> bytes:
    return line(
        "session",
        format=FORMAT,
        version=VERSION,
        id=session.id,
        title=session.title,
        titled_by=session.titled_by,
        agent=session.agent,
        model=session.model,
        system=session.system,
        settings=session.settings,
        pinned=session.pinned,
        archived=session.archived,
        tags=list(session.tags),
        project=session.project,
        head=session.head,
        redo=list(session.redo),
        created_at=time_text(session.created_at),
        updated_at=time_text(session.updated_at),
    )


def message_line(message: Message) -> bytes:
    error, usage = message.error, message.usage
    return line(
        "message",
        id=message.id,
        parent_id=message.parent_id,
        role=message.role,
        status=message.status,
        parts=all_to_json(message.parts),
        reason=message.reason,
        error=None if error is None else {"code": error.code, "message": error.message},
        recovery=None if message.recovery == "pending" else message.recovery,
        model=message.model,
        usage=None
        if usage is None
        else {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost": usage.cost},
        created_at=time_text(message.created_at),
    )


def compaction_line(compaction: Compaction) -> bytes:
    created_at = time_text(compaction.created_at)
    return line("compaction", message_id=compaction.message_id, summary=compaction.summary, created_at=created_at)


def file_line(note: FileNote) -> bytes:
    return line(
        "file",
        id=note.id,
        name=note.name,
        media_type=note.media_type,
        size=note.size,
        sha256=note.sha256,
        missing=note.missing,
    )


def content_line(data: bytes) -> bytes:
    return line("content", data=b64encode(data).decode("ascii"))


def end_line(messages: int, compactions: int, files: int) -> bytes:
    return line("end", messages=messages, compactions=compactions, files=files)


def time_text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def above(mid: MessageId | None, left_out: Mapping[MessageId, MessageId | None]) -> MessageId | None:
    """The nearest message from `mid` up that is not left out; `left_out` says what is above each."""
    while mid is not None and mid in left_out:
        mid = left_out[mid]
    return mid


# ---- ids of our own ----


def renamed(
    section: Section, owner: OwnerId, new_id: Callable[[str], str], files: Mapping[FileId, File]
) -> tuple[Session, list[Message], list[Compaction]]:
    """The section under fresh ids and with the files as they were kept here. The ids are made in the order of the
    messages, so that siblings keep theirs."""
    sid = SessionId(new_id("ses"))
    ids = {message.id: MessageId(new_id("msg")) for message in section.messages}
    session = replace(
        section.session,
        id=sid,
        owner=owner,
        head=None if section.session.head is None else ids[section.session.head],
        redo=tuple(ids[mid] for mid in section.session.redo),
    )
    messages = [
        replace(
            message,
            id=ids[message.id],
            owner=owner,
            session_id=sid,
            parent_id=None if message.parent_id is None else ids[message.parent_id],
            parts=tuple(_renamed(part, files) for part in message.parts),
        )
        for message in section.messages
    ]
    compactions = [
        replace(item, session_id=sid, owner=owner, message_id=ids[item.message_id]) for item in section.compactions
    ]
    return session, messages, compactions


def _renamed(part: Part, files: Mapping[FileId, File]) -> Part:
    return files[part.file_id] if isinstance(part, File) else part
