"""The person's files, read for a model that can make something of them."""

from collections.abc import Sequence
from typing import Final, Protocol

from holdfast.agents.chat.history import Attached
from holdfast.agents.models.port import Media, ModelInfo
from holdfast.core.parts import File
from holdfast.core.session import Message

MAX_FILE: Final = 20 * 1024 * 1024


class FileReader(Protocol):
    async def read(self, file: File) -> bytes | None:
        """The contents; None if they are gone."""


class NoFiles:
    async def read(self, file: File) -> bytes | None:
        return None


async def attached(reader: FileReader, messages: Sequence[Message], model: ModelInfo, known: Attached) -> Attached:
    """Every file of the messages, each read once per run."""
    found: dict[str, Media | str] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, File):
                found[part.file_id] = known[part.file_id] if part.file_id in known else await _read(reader, part, model)
    return found  # type: ignore[return-value]


async def _read(reader: FileReader, file: File, model: ModelInfo) -> Media | str:
    if (why := _unreadable(file, model)) is not None:
        return f"[The person attached the file {file.name!r} ({file.media_type}, {file.size} bytes); {why}.]"
    data = await reader.read(file)
    return f"[The file {file.name!r} is no longer there.]" if data is None else Media(file.name, file.media_type, data)


def _unreadable(file: File, model: ModelInfo) -> str | None:
    if file.size > MAX_FILE:
        return "it is too large to be shown to you"
    if file.media_type.startswith("image/"):
        return None if "images" in model.abilities else "you cannot see images"
    if file.media_type == "application/pdf":
        return None if "documents" in model.abilities else "you cannot read this kind of document"
    return None if _is_text(file.media_type) else "you cannot read this kind of file"


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.partition(";")[0] in (
        "application/json",
        "application/xml",
        "application/javascript",
        "application/x-yaml",
        "application/toml",
    )
