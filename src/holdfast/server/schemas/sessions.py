"""Requests that create and change sessions, and sessions as responses."""

from typing import Annotated, Literal, Self

from pydantic import Field

from holdfast.core.run import RunStatus
from holdfast.engine.sessions import SessionView
from holdfast.engine.transactions.memory import named_provider
from holdfast.ports.store import SearchHit
from holdfast.server.schemas.base import (
    Instructions,
    JsonObject,
    ListResponse,
    ModelSettings,
    Name,
    RequestModel,
    ResponseModel,
    SessionIdField,
    Tags,
    Timestamp,
    Title,
    shallow_fields,
)
from holdfast.server.schemas.runs import AcceptedRunResponse

MemoryProviderName = Annotated[
    Name,
    Field(
        description="A memory provider, or `none`: nothing is recalled or remembered. Also stored as `settings.memory`."
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


class CreateSessionRequest(RequestModel):
    title: Title | None = None
    agent: Name | None = None
    model: Name | None = None
    system: Instructions | None = None
    settings: ModelSettings | None = None
    memory: MemoryProviderName | None = None
    cwd: WorkingDirectory | None = None
    agent_options: AgentOptions | None = None
    previous_session_id: SessionIdField | None = None
    pinned: bool = False
    archived: bool = False
    tags: Tags = Field(default_factory=list)
    project: Name | None = None


class UpdateSessionRequest(RequestModel):
    """Only the given fields change; null clears a field that may be empty."""

    title: Title = ""
    agent: Name = ""
    model: Name | None = None
    system: Instructions | None = None
    settings: ModelSettings | None = None
    memory: MemoryProviderName | None = None
    cwd: WorkingDirectory | None = None
    agent_options: AgentOptions | None = None
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
    previous_session_id: str | None
    pinned: bool
    archived: bool
    tags: list[str]
    project: str | None
    head: str | None
    can_redo: bool
    active_run: str | None
    active_run_status: RunStatus | None
    queued_runs: list[AcceptedRunResponse]
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
            "memory": named_provider(session.settings),
            "cwd": session.cwd,
            "agent_options": session.agent_options,
            "can_redo": bool(session.redo),
            "active_run": None if view.active_run is None else view.active_run.id,
            "active_run_status": None if view.active_run is None else view.active_run.status,
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


class SessionUsageResponse(ResponseModel):
    runs: int
    input_tokens: int
    output_tokens: int
    cost: float | None
