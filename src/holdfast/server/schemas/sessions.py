"""Requests that create and change sessions, and sessions as responses. Chat settings among them: `core.chat_settings`;
what an edit does: `engine.transactions.session_edits`."""

from typing import Annotated, Literal, Self

from pydantic import Field

from holdfast.core import chat_settings
from holdfast.core.chat_settings import ModelDefault, ReasoningEffort
from holdfast.core.run import RunStatus
from holdfast.engine.sessions import SessionView
from holdfast.engine.transactions.approvals import WaitsFor
from holdfast.engine.transactions.memory import named_provider
from holdfast.ports.store import SearchHit
from holdfast.server.schemas.base import (
    Instructions,
    JsonObject,
    ListResponse,
    ModelSettings,
    Name,
    ResponseModel,
    SessionIdField,
    Tags,
    Timestamp,
    Title,
    shallow_fields,
)
from holdfast.server.schemas.chat_settings import ChatParametersRequest
from holdfast.server.schemas.runs import AcceptedRunResponse

MemoryProviderName = Annotated[
    Name,
    Field(
        description="A memory provider, `default` for the server's own, or `none`: no memories are used, and "
        "nothing of this chat is ever remembered. If omitted, the default for all chats. Stored as `settings.memory`."
    ),
]

WorkingDirectory = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4000,
        description="The directory that an agent program works in, an absolute path on the server; without it, a "
        "directory of the session's own. Also stored as `settings.cwd`.",
    ),
]

AgentOptions = Annotated[
    dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=500)] | bool],
    Field(
        max_length=20,
        description="Chosen options of an agent program, by their ids. Also stored as `settings.agent_options`.",
    ),
]


PersonaIdField = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="The persona that answers (`/api/personas`). Its model becomes the chat's, unless `model` is given "
        "too. Also stored as `settings.persona`.",
    ),
]


class CreateSessionRequest(ChatParametersRequest):
    title: Title | None = None
    agent: Name | None = None
    model: Name | None = None
    system: Instructions | None = None
    settings: ModelSettings | None = None
    memory: MemoryProviderName | None = None
    cwd: WorkingDirectory | None = None
    agent_options: AgentOptions | None = None
    persona: PersonaIdField | None = None
    previous_session_id: SessionIdField | None = None
    pinned: bool = False
    archived: bool = False
    tags: Tags = Field(default_factory=list)
    project: Name | None = None


class UpdateSessionRequest(ChatParametersRequest):
    """Only the given fields change; null clears a field that may be empty."""

    title: Title = ""
    agent: Name = ""
    model: Name | None = None
    system: Instructions | None = None
    settings: ModelSettings | None = None
    memory: MemoryProviderName | None = None
    cwd: WorkingDirectory | None = None
    agent_options: AgentOptions | None = None
    persona: PersonaIdField | None = None
    pinned: bool = False
    archived: bool = False
    tags: Tags = Field(default_factory=list)
    project: Name | None = None
    head: Annotated[Name, Field(description="Show the branch that this message is on.")] = ""


class SearchMatchResponse(ResponseModel):
    message_id: str | None
    excerpt: str


class SessionResponse(ResponseModel):
    id: str
    title: str
    titled_by: Literal["nobody", "model", "person"]
    agent: str
    model: str | None
    system: str | None
    settings: JsonObject | None
    memory: str | None
    cwd: str | None
    agent_options: dict[str, str | bool]
    persona: str | None
    temperature: float | ModelDefault | None
    top_p: float | ModelDefault | None
    max_tokens: int | ModelDefault | None
    reasoning_effort: Literal[ReasoningEffort, ModelDefault] | None
    use_tools: bool | None
    previous_session_id: str | None
    pinned: bool
    archived: bool
    tags: list[str]
    project: str | None
    head: str | None
    can_redo: bool
    active_run: str | None
    active_run_status: RunStatus | None
    waits_for: Annotated[
        WaitsFor | None,
        Field(
            description="What the active run waits for: that a person allows a call (`approval`) or answers a question "
            "(`answer`)."
        ),
    ]
    queued_runs: Annotated[
        list[AcceptedRunResponse],
        Field(
            description="With their user messages. `parts` is empty if they would be too long: of more than 1000 "
            "bytes in lists, of more than 8 MB in all in a session."
        ),
    ]
    version: int
    created_at: Timestamp
    updated_at: Timestamp

    match: Annotated[SearchMatchResponse | None, Field(description="In search results only.")] = Field(
        default=None, exclude_if=lambda match: match is None
    )

    @classmethod
    def from_view(cls, view: SessionView, match: SearchHit | None = None) -> Self:
        session = view.session
        differing = {
            **dict.fromkeys(chat_settings.SESSION_FIELDS),
            **chat_settings.read(session.settings, *chat_settings.SESSION_FIELDS),
            "settings": session.settings if isinstance(session.settings, dict) else None,
            "memory": named_provider(session.settings),
            "cwd": session.cwd,
            "agent_options": session.agent_options,
            "persona": session.persona,
            "can_redo": bool(session.redo),
            "active_run": None if view.active_run is None else view.active_run.id,
            "active_run_status": None if view.active_run is None else view.active_run.status,
            "waits_for": view.waits_for,
            "queued_runs": [AcceptedRunResponse.from_run(run, message) for run, message in view.queued],
            "match": match,
        }
        return cls.model_validate({**shallow_fields(session), **differing})


class SessionListResponse(ListResponse[SessionResponse]): ...


class SessionContextResponse(ResponseModel):
    """How many tokens of the model's context a session uses, by an estimate."""

    model: str
    used: int
    limit: int | None
