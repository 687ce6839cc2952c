"""Attachments as a model reads them: text files as text, images and PDFs if the model takes them, and a note for any
other file. Which may be uploaded: `server.uploads`."""

from collections.abc import Sequence
from typing import Final, Protocol

from holdfast.agents.chat.model_messages import Attached
from holdfast.core.ids import FileId
from holdfast.core.parts import FilePart, Part
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.ports.model import Media, ModelInfo

MAX_FILE: Final = 20 * 1024 * 1024
_TEXT_TYPES: Final = ("text/", "application/json", "application/xml", "application/yaml", "application/x-yaml")
_TEXT_ENDINGS: Final = ("+json", "+xml", "javascript", "toml", "x-sh", "x-python", "sql")


class FileReader(Protocol):
    async def read(self, file: FilePart) -> bytes | None:
        """The contents, or None if they were deleted."""


class ToolFileStore(FileReader, Protocol):
    async def store_for_run(self, run: Run, media: Media) -> FilePart:
        """Store what a tool returned. It is kept as long as the run is open or a message refers to it. Raises
        StorageFullError."""


async def read_attachments(
    reader: FileReader, messages: Sequence[Message], model: ModelInfo, known: Attached, answer: Sequence[Part] = ()
) -> Attached:
    """Every file in the messages and in the answer so far; each is read once per run."""
    found: dict[FileId, Media | str] = {}
    parts = [*(part for message in messages for part in message.parts), *answer]
    for part in (part for part in parts if isinstance(part, FilePart)):
        found[part.file_id] = known[part.file_id] if part.file_id in known else await _read(reader, part, model)
    return found


async def _read(reader: FileReader, file: FilePart, model: ModelInfo) -> Media | str:
    if file.missing is not None:
        return f"[The user attached the file {file.name!r}; its content was not imported.]"
    kind = file.media_type.partition(";")[0].strip().lower()
    is_text = kind.startswith(_TEXT_TYPES) or kind.endswith(_TEXT_ENDINGS)
    why = None
    if file.size > MAX_FILE:
        why = "it is too large to be shown to you"
    elif not is_text and kind.startswith("image/"):
        why = None if "images" in model.abilities else "you cannot see images"
    elif not is_text:
        can_read = kind == "application/pdf" and "documents" in model.abilities
        why = None if can_read else "you cannot read this kind of file"
    if why is not None:
        return f"[The user attached the file {file.name!r} ({file.media_type}, {file.size} bytes); {why}.]"
    data = await reader.read(file)
    if data is None:
        return f"[The file {file.name!r} was deleted.]"
    return f"File {file.name}:\n\n{data.decode('utf-8', 'replace')}\n" if is_text else Media(file.name, kind, data)
