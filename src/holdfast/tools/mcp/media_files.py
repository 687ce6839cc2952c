"""Stores images and audio that tools return as files in the workspace: results are text for the model."""

import base64
import binascii
import hashlib
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from holdfast.ports.tool import ToolError
from holdfast.tools.workspace.jail import Jail

DIRECTORY: Final = "tool-output"
_MAX_FILES: Final = 20  # Of one result
_MAX_CHARACTERS: Final = 30_000_000  # Of one block, in base 64


def save_media(blocks: Sequence[Any], workspace: Path) -> dict[int, str]:
    """The path of each stored block by its position. What cannot be stored is left out. Blocking: call it on a
    worker thread."""
    media = [(at, block) for at, block in enumerate(blocks) if block.type in ("image", "audio")]
    saved: dict[int, str] = {}
    for at, block in media[:_MAX_FILES]:
        if len(block.data) > _MAX_CHARACTERS:
            continue
        try:
            data = base64.b64decode(block.data)
            name = hashlib.sha256(data).hexdigest()[:16] + (mimetypes.guess_extension(block.mime_type) or ".bin")
            Jail(workspace).write((DIRECTORY, name), data)
        except (binascii.Error, OSError, ToolError):
            continue
        saved[at] = f"{DIRECTORY}/{name}"
    return saved
