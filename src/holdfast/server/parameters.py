"""Parameters that several routes share, cursors of paged lists, and message input as parts."""

import base64
import binascii
import json
from typing import Annotated, Any

from pydantic import Field

from holdfast.core.errors import InvalidInputError
from holdfast.core.ids import FileId, RunId, SessionId
from holdfast.core.parts import Part, TextPart
from holdfast.engine.attachments import Attachments
from holdfast.server.routing import Header
from holdfast.server.schemas.messages import FilePartRequest, MessageInput, TextPartRequest

MAX_SEQ = 2**53

SessionIdPath = Annotated[SessionId, Field(max_length=200, description="Session id.")]
RunIdPath = Annotated[RunId, Field(max_length=200, description="Run id.")]
IdPath = Annotated[str, Field(max_length=200)]
Limit = Annotated[int, Field(ge=1, le=200, description="Items per page.")]
Cursor = Annotated[str | None, Field(max_length=500, description="The `next` value of the previous page.")]
IdempotencyKey = Annotated[
    str | None,
    Header("Idempotency-Key"),
    Field(min_length=1, max_length=200, description="Repeating a request with the same key returns the same run."),
]
IfMatch = Annotated[
    str | None,
    Header("If-Match"),
    Field(max_length=100, description="Apply the change only if the session has this version."),
]


def expected_version(if_match: str | None) -> int | None:
    """Reads `"7"`, `W/"7"` or `7`; `*` matches any version, as a missing header does."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise InvalidInputError("If-Match", 'must be a session version such as "7"')
    return int(text)


def write_cursor(*position: float | str) -> str:
    """A position in a list, as opaque text for clients."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def read_cursor(text: str | None, *types: type) -> Any:
    """The position given to `write_cursor`: a value, or a tuple of several; None without a cursor. Raises
    InvalidInputError for text that is not a cursor of this list."""
    if text is None:
        return None
    invalid = InvalidInputError("cursor", "is not a cursor of this list; omit it to start from the beginning")
    try:
        position = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise invalid from None
    if not isinstance(position, list) or len(position) != len(types):
        raise invalid
    for item, kind in zip(position, types, strict=True):
        accepted = (int, float) if kind is float else (kind,)
        if not isinstance(item, accepted) or isinstance(item, bool):
            raise invalid
        if isinstance(item, int | float) and not abs(item) < MAX_SEQ:
            raise invalid
    return tuple(position) if len(types) > 1 else position[0]


async def read_input(content: MessageInput, attachments: Attachments) -> list[Part]:
    """The parts of a message. A file is given by its id; name, type and size come from the store."""
    if isinstance(content, str):
        return [TextPart(content)]
    parts: list[Part] = []
    for item in content:
        match item:
            case TextPartRequest(text=text):
                parts.append(TextPart(text))
            case FilePartRequest(file_id=file_id):
                parts.append((await attachments.file(FileId(file_id))).part())
    if not any(not isinstance(part, TextPart) or part.text.strip() for part in parts):
        raise InvalidInputError("input", "must contain text or a file")
    return parts
