"""Requests that start and change runs, and runs as responses. What each does: `engine.runs`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from holdfast.core.events import Decision, InputAction
from holdfast.core.form_schema import MAX_FIELDS
from holdfast.core.run import Lifetime, Run, RunStatus
from holdfast.core.session import Message
from holdfast.engine.transactions.approvals import WaitsFor
from holdfast.engine.transactions.steering import MAX_CHARACTERS
from holdfast.server.schemas.base import (
    ListResponse,
    MessageIdField,
    ModelSettings,
    Name,
    RequestModel,
    ResponseModel,
    SessionIdField,
    Timestamp,
)
from holdfast.server.schemas.drafts import SentDraftRequest
from holdfast.server.schemas.messages import (
    FailureResponse,
    MessageInput,
    MessageResponse,
    RecoveryResponse,
    UsageResponse,
)

SentDraft = Annotated[
    SentDraftRequest,
    Field(
        description="The draft (`/api/drafts`) that the message was written as. It is cleared if it has this version."
    ),
]


class StartRunRequest(RequestModel):
    input: MessageInput
    model: Name | None = None
    agent: Name | None = None
    settings: ModelSettings | None = None
    lifetime: Lifetime = "detached"
    on_busy: Literal["queue", "reject", "interrupt"] = "queue"
    draft: SentDraft | None = None


class ComparedRunRequest(RequestModel):
    session_id: SessionIdField | None = None
    input: MessageInput
    model: Name | None = None
    agent: Name | None = None
    settings: ModelSettings | None = None


class ComparisonRequest(RequestModel):
    id: Name
    blind: bool = False


class CompareRequest(RequestModel):
    runs: Annotated[list[ComparedRunRequest], Field(min_length=1, max_length=12)]
    comparison: Annotated[
        ComparisonRequest | None,
        Field(description="Stored in the settings of the new sessions, which are then listed with `source=compare`."),
    ] = None


class EditQueuedRunRequest(RequestModel):
    input: MessageInput


class SteerRequest(RequestModel):
    text: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS, pattern=r"\S")]
    draft: SentDraft | None = None


class CancelSessionRequest(RequestModel):
    key: Annotated[
        Annotated[str, Field(min_length=1, max_length=200)] | None,
        Field(description="The `Idempotency-Key` of a request, which may still be under way."),
    ] = None


class ContinueRunRequest(RequestModel):
    model: Name | None = None
    allow: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(
            max_length=20,
            description="Ids of calls that were denied because nobody answered in time, and that are allowed now. Of "
            "several such requests for a run the first counts; a repeat returns its run.",
        ),
    ] = Field(default_factory=list)


class RetryRequest(RequestModel):
    message_id: MessageIdField
    model: Name | None = None


class EditMessageRequest(RequestModel):
    message_id: MessageIdField
    input: MessageInput
    model: Name | None = None


class ApprovalDecisionRequest(RequestModel):
    decision: Decision
    option: Name | None = None
    """The name of the option that was chosen, if the question has the agent's own options."""


class InputAnswerRequest(RequestModel):
    """An answer to the model or to the server of a running tool. `content` holds the values of an accepted form, by
    field; of a question of the model, `answer`."""

    action: InputAction
    content: Annotated[
        dict[
            Annotated[str, Field(max_length=200)],
            Annotated[str, Field(max_length=20_000)]
            | bool
            | int
            | float
            | list[Annotated[str, Field(max_length=1000)]],
        ],
        Field(max_length=MAX_FIELDS),
    ] = Field(default_factory=dict)


class RunResponse(ResponseModel):
    id: str
    session_id: str
    message_id: str
    user_message_id: str
    status: RunStatus
    reason: str | None
    finish_reason: str | None
    lifetime: Lifetime
    model: str | None
    agent: str
    usage: UsageResponse | None
    error: FailureResponse | None
    recovery: RecoveryResponse | None
    cancel_requested: bool
    continues: str | None
    waits_for: Annotated[
        WaitsFor | None,
        Field(
            description="What a waiting run needs of a person: to allow a call (`approval`), or to answer a question "
            "(`answer`). Only where runs are listed or read."
        ),
    ] = None
    steers: Annotated[str | None, Field(description="The active run that this queued one's text is to be added to.")]
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None
    last_seq: int


class CancelledRunResponse(ResponseModel):
    run: Annotated[RunResponse | None, Field(description="Null if there was nothing to cancel.")]


class RunEventResponse(ResponseModel):
    seq: int
    type: str
    data: dict[str, Any]


class RunEventListResponse(ListResponse[RunEventResponse]):
    """Events in order. `next` is the last event's number, or null if there are no events after the cursor yet."""


class RunListResponse(ListResponse[RunResponse]): ...


class AcceptedRunResponse(ResponseModel):
    """A run with the user message that it answers."""

    run: RunResponse
    message: MessageResponse
    warnings: Annotated[list[str], Field(description="Sentences about budgets that are used up and only warn.")] = (
        Field(default_factory=list)
    )

    @classmethod
    def from_run(cls, run: Run, message: Message, warnings: Sequence[str] = ()) -> Self:
        run_response = RunResponse.model_validate(run)
        return cls(run=run_response, message=MessageResponse.from_message(message), warnings=list(warnings))
