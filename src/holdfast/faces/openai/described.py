"""What goes out, for `/openapi.json`. Answers have more fields than are named here: OpenAI's own."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Out(BaseModel):
    model_config = ConfigDict(extra="allow", defer_build=True)


class Model(Out):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(Out):
    object: Literal["list"]
    data: list[Model]


class Item(Out):
    type: str


class ResponseOut(Out):
    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["queued", "in_progress", "completed", "incomplete", "cancelled", "failed"]
    model: str
    output: list[Item]
    error: dict[str, Any] | None
    usage: dict[str, Any] | None


class Deleted(Out):
    id: str
    object: str
    deleted: bool


class InputItems(Out):
    object: Literal["list"]
    data: list[Item]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Choice(Out):
    index: int
    finish_reason: str
    message: dict[str, Any]


class Completion(Out):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: dict[str, Any]


class ConversationOut(Out):
    id: str
    object: Literal["conversation"]
    created_at: int
    metadata: dict[str, Any]


class ErrorOut(BaseModel):
    error: dict[str, Any]


class OpenAIError(ErrorOut):
    """`message`, `type`, `param` and `code`."""


_ERROR: dict[str, Any] = {"model": OpenAIError, "description": "Refused: the error says why."}
ERRORS: dict[int | str, dict[str, Any]] = {"4XX": _ERROR, "5XX": _ERROR}
STREAM: dict[str, Any] = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
