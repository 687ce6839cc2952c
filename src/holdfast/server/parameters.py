"""Parameters that several routes share, cursors of paged lists, and message input as parts. A stale `If-Match` is
refused in `engine.transactions.row_access`."""

import base64
import json
from typing import Annotated, TypeVar

from pydantic import Field, TypeAdapter

from holdfast.core.errors import InvalidInputError
from holdfast.core.ids import FileId, RunId, SessionId
from holdfast.core.parts import Part, TextPart
from holdfast.engine.attachments import Attachments
from holdfast.server.routing import Header
from holdfast.server.schemas.messages import FilePartRequest, MessageInput, TextPartRequest

MAX_SEQ = 2**53
PositionT = TypeVar("PositionT")
Number = Annotated[int, Field(gt=-MAX_SEQ, lt=MAX_SEQ)]
Moment = Annotated[float, Field(gt=-MAX_SEQ, lt=MAX_SEQ)]

SessionIdPath = Annotated[SessionId, Field(max_length=200, description="Session id.")]
RunIdPath = Annotated[RunId, Field(max_length=200, description="Run id.")]
IdPath = Annotated[str, Field(max_length=200)]
Limit = Annotated[int, Field(ge=1, le=200, description="Items per page.")]
Cursor = Annotated[str | None, Field(max_length=500, description="The `next` value of the previous page.")]
IdempotencyKey = Annotated[
    str | None,
    Header("Idempotency-Key"),
    Field(min_length=1, max_length=200, description="Repeating a request with the same key returns the same result."),
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


def read_cursor(text: str | None, position: type[PositionT]) -> PositionT | None:
    """The position given to `write_cursor`; None without a cursor. Raises InvalidInputError for text that is not a
    cursor of this list."""
    if text is None:
        return None
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return TypeAdapter(position).validate_json(content, strict=True)
    except ValueError:
        problem = "is not a cursor of this list; omit it to start from the beginning"
        raise InvalidInputError("cursor", problem) from None


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
