"""Attachments, read for models that accept their media type."""

from collections.abc import Sequence
from typing import Final, Protocol

from holdfast.agents.chat.history import Attached
from holdfast.core.parts import FilePart
from holdfast.core.session import Message
from holdfast.ports.model import Media, ModelInfo

MAX_FILE: Final = 20 * 1024 * 1024
_TEXT_TYPES: Final = frozenset(f"application/{name}" for name in ("json", "xml", "javascript", "x-yaml", "toml"))


class FileReader(Protocol):
    async def read(self, file: FilePart) -> bytes | None:
        """The contents, or None if they were deleted."""


async def read_attachments(
    reader: FileReader, messages: Sequence[Message], model: ModelInfo, known: Attached
) -> Attached:
    """Every file in the messages; each is read once per run."""
    found: dict[str, Media | str] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, FilePart):
                found[part.file_id] = known[part.file_id] if part.file_id in known else await _read(reader, part, model)
    return found  # type: ignore[return-value]


async def _read(reader: FileReader, file: FilePart, model: ModelInfo) -> Media | str:
    if (why := _unreadable_reason(file, model)) is not None:
        return f"[The user attached the file {file.name!r} ({file.media_type}, {file.size} bytes); {why}.]"
    data = await reader.read(file)
    return f"[The file {file.name!r} was deleted.]" if data is None else Media(file.name, file.media_type, data)


def _unreadable_reason(file: FilePart, model: ModelInfo) -> str | None:
    if file.size > MAX_FILE:
        return "it is too large to be shown to you"
    if file.media_type.startswith("image/"):
        return None if "images" in model.abilities else "you cannot see images"
    if file.media_type == "application/pdf":
        return None if "documents" in model.abilities else "you cannot read this kind of document"
    readable = file.media_type.startswith("text/") or file.media_type.partition(";")[0] in _TEXT_TYPES
    return None if readable else "you cannot read this kind of file"
