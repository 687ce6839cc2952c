"""Stores images, audio and other files that tools return in the workspace, and picks the images that models can see.
Their number and size are limited here."""

import base64
import binascii
import hashlib
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holdfast.core.image_types import image_type
from holdfast.ports.model import Media
from holdfast.ports.tool import ToolError
from holdfast.tools.workspace.jail import Jail

DIRECTORY: Final = "tool-output"
_MAX_FILES: Final = 20  # Of one result
_MAX_CHARACTERS: Final = 30_000_000  # Of one block, in base 64
_MAX_IMAGES: Final = 10  # Of one result that the model is shown
_MAX_IMAGE: Final = 3_750_000  # Bytes. Anthropic, the strictest provider, accepts five megabytes in base 64.


@dataclass(frozen=True, slots=True)
class SavedMedia:
    paths: Mapping[int, str]  # Of each stored block, by its position
    images: tuple[Media, ...]  # In formats that every provider accepts


def save_media(blocks: Sequence[Any], workspace: Path) -> SavedMedia:
    """What cannot be stored is left out. Blocking: call it on a worker thread."""
    encoded = [(at, *_encoded(block)) for at, block in enumerate(blocks)]
    paths: dict[int, str] = {}
    images: list[Media] = []
    for at, text, declared in [each for each in encoded if each[1] is not None][:_MAX_FILES]:
        if text is None or len(text) > _MAX_CHARACTERS:
            continue
        try:
            data = base64.b64decode(text)
        except binascii.Error:
            continue
        kind = image_type(data)
        ending = mimetypes.guess_extension(kind or declared) or ".bin"
        name = hashlib.sha256(data).hexdigest()[:16] + ending
        if kind is not None and len(data) <= _MAX_IMAGE and len(images) < _MAX_IMAGES:
            images.append(Media(name, kind, data))
        try:
            Jail(workspace).write((DIRECTORY, name), data)
        except (OSError, ToolError):
            continue
        paths[at] = f"{DIRECTORY}/{name}"
    return SavedMedia(paths, tuple(images))


def _encoded(block: Any) -> tuple[str | None, str]:
    """The content in base 64 and its declared type, if the block has one."""
    if block.type in ("image", "audio"):
        return block.data, block.mime_type
    if block.type == "resource":
        return getattr(block.resource, "blob", None), block.resource.mime_type or ""
    return None, ""
