"""Messages and their parts. How they are made of events: `core.transcript`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, Self

from pydantic import Field
from typing_extensions import TypeAliasType, TypedDict

from holdfast.core.parts import MissingFile, PlanStatus, ToolState, all_to_json
from holdfast.core.run import RecoveryState
from holdfast.core.session import Message, Role
from holdfast.core.session_limits import MAX_TEXT
from holdfast.core.transcript import MessageStatus
from holdfast.engine.messages import MessageExcerpt, MessageView
from holdfast.server.schemas.base import (
    JsonObject,
    ListResponse,
    MessageIdField,
    Name,
    RequestModel,
    ResponseModel,
    Timestamp,
    shallow_fields,
)

# ---- requests ----


class TextPartRequest(RequestModel):
    type: Literal["text"]
    text: Annotated[str, Field(max_length=MAX_TEXT)]


class FilePartRequest(RequestModel):
    type: Literal["file"]
    file_id: Name


MessageInput = TypeAliasType(
    "MessageInput",
    Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    | Annotated[
        list[Annotated[TextPartRequest | FilePartRequest, Field(discriminator="type")]],
        Field(min_length=1, max_length=100),
    ],
)
"""Text, or text and files that were uploaded before."""


class MessageIdRequest(RequestModel):
    message_id: MessageIdField


class EditAnswerRequest(RequestModel):
    message_id: MessageIdField
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT, description="Replaces all text of the answer.")]


# ---- responses: parts are dictionaries as `core.parts` writes them ----


class TextPartResponse(TypedDict):
    type: Literal["text"]
    text: str
    begins_step: NotRequired[bool]


class ReasoningPartResponse(TypedDict):
    type: Literal["reasoning"]
    text: str
    provider: NotRequired[Any]
    duration_ms: NotRequired[int]
    begins_step: NotRequired[bool]


class ToolPartResponse(TypedDict):
    type: Literal["tool"]
    call_id: str
    name: str
    args: Any
    result: Any
    is_error: bool
    state: ToolState
    output: NotRequired[str]
    duration_ms: NotRequired[int]
    provider: NotRequired[Any]
    may_have_run: NotRequired[Literal[True]]
    args_text: NotRequired[str]
    begins_step: NotRequired[bool]


class FilePartResponse(TypedDict):
    type: Literal["file"]
    file_id: str
    name: str
    media_type: str
    size: int
    call_id: NotRequired[Annotated[str, Field(description="The tool call that returned the file.")]]
    missing: NotRequired[Annotated[MissingFile, Field(description="Why an imported file has no content.")]]


class RememberedPartResponse(TypedDict):
    type: Literal["remembered"]
    items: list[JsonObject]
    note: NotRequired[str]


class PlanEntryResponse(TypedDict):
    content: str
    status: PlanStatus
    priority: NotRequired[str]


class PlanPartResponse(TypedDict):
    type: Literal["plan"]
    entries: list[PlanEntryResponse]


class SteeredPartResponse(TypedDict):
    """What the user added while the run was active, where the model read it."""

    type: Literal["steered"]
    id: str
    text: str


PartResponse = TypeAliasType(
    "PartResponse",
    Annotated[
        TextPartResponse
        | ReasoningPartResponse
        | ToolPartResponse
        | FilePartResponse
        | RememberedPartResponse
        | PlanPartResponse
        | SteeredPartResponse,
        Field(discriminator="type"),
    ],
)


class UsageResponse(ResponseModel):
    input_tokens: int
    output_tokens: int
    cost: float | None
    cached_tokens: int | None
    reasoning_tokens: int | None


class FailureResponse(ResponseModel):
    code: str
    message: str


class RecoveryResponse(ResponseModel):
    state: RecoveryState


class MessagePersonaResponse(ResponseModel):
    """Who answered, as it was then; the persona may have been changed or deleted since."""

    name: str
    emoji: str | None = None
    picture: Annotated[str | None, Field(description="The id of an image, which may be gone.")] = None


class MessageResponse(ResponseModel):
    id: str
    session_id: str
    role: Role
    parent_id: str | None
    run_id: str | None
    status: MessageStatus
    parts: list[PartResponse]
    reason: Annotated[
        str | None,
        Field(description="Why an answer ended early, or `edited` if a person wrote its text."),
    ]
    error: FailureResponse | None
    recovery: RecoveryResponse | None
    siblings: list[str]
    model: str | None
    persona: MessagePersonaResponse | None
    usage: UsageResponse | None
    summary: Annotated[
        str | None,
        Field(description="What models are shown instead of everything up to and including this message."),
    ]
    duration_ms: Annotated[
        int | None,
        Field(
            description="Milliseconds from the start of an answer's run to its end, with its tools and the time it "
            "waited for a person. Null elsewhere than in lists, while it runs, and without a run on this server."
        ),
    ]
    idempotency_key: str | None
    created_at: Timestamp
    last_seq: int

    @classmethod
    def from_view(cls, view: MessageView) -> Self:
        duration = None if view.duration is None else round(1000 * view.duration)
        return cls.from_message(view.message, view.siblings, view.summary, duration)

    @classmethod
    def from_message(
        cls,
        message: Message,
        siblings: Sequence[str] | None = None,
        summary: str | None = None,
        duration_ms: int | None = None,
    ) -> Self:
        differing = {
            "parts": all_to_json(message.parts),
            "recovery": None if message.recovery is None else {"state": message.recovery},
            "siblings": [message.id] if siblings is None else list(siblings),
            "summary": summary,
            "duration_ms": duration_ms,
            "idempotency_key": message.key,
        }
        return cls.model_validate({**shallow_fields(message), **differing})


class MessageExcerptResponse(ResponseModel):
    id: str
    role: Role
    text: str
    created_at: Timestamp

    @classmethod
    def from_excerpt(cls, excerpt: MessageExcerpt) -> Self:
        message = excerpt.message
        return cls.model_validate(
            {"id": message.id, "role": message.role, "text": excerpt.text, "created_at": message.created_at}
        )


class MessageExcerptListResponse(ListResponse[MessageExcerptResponse]): ...


class MessageListResponse(ListResponse[MessageResponse]): ...
