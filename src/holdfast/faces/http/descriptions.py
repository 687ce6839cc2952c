"""What answers look like, for the API's description. They are built by `answers.py`; a test holds the one against the
other."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Out(BaseModel):
    """`defer_build`: these only describe, so nothing is made of them before somebody asks for `/openapi.json`."""

    model_config = ConfigDict(defer_build=True)


class UsageOut(Out):
    input_tokens: int
    output_tokens: int
    cost: float | None = None


class ErrorOut(Out):
    code: str
    message: str


class RecoveryOut(Out):
    state: Literal["pending", "recovered", "none"]


class RunOut(Out):
    id: str
    session_id: str
    message_id: str
    user_message_id: str
    status: Literal["queued", "running", "waiting", "complete", "cancelled", "failed", "interrupted"]
    reason: str | None
    finish_reason: str | None
    lifetime: Literal["detached", "attached"]
    model: str | None
    agent: str
    usage: UsageOut | None
    error: ErrorOut | None
    recovery: RecoveryOut | None
    cancel_requested: bool
    continues: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    last_seq: int


class MessageOut(Out):
    id: str
    session_id: str
    role: Literal["user", "assistant"]
    parent_id: str | None
    run_id: str | None
    status: Literal["streaming", "complete", "cancelled", "failed", "interrupted"]
    parts: list[dict[str, Any]]
    reason: str | None
    error: ErrorOut | None
    recovery: RecoveryOut | None
    siblings: list[str]
    model: str | None
    usage: UsageOut | None
    idempotency_key: str | None
    created_at: datetime
    last_seq: int


class AcceptedOut(Out):
    run: RunOut
    message: MessageOut


class SessionOut(Out):
    id: str
    title: str
    titled_by: Literal["nobody", "model", "person"]
    agent: str
    model: str | None
    system: str | None
    settings: dict[str, Any] | None
    memory: str | None
    previous_session_id: str | None
    pinned: bool
    archived: bool
    tags: list[str]
    project: str | None
    head: str | None
    can_redo: bool
    active_run: str | None
    queued_runs: list[AcceptedOut]
    version: int
    created_at: datetime
    updated_at: datetime


class MatchOut(Out):
    message_id: str | None
    excerpt: str


class FoundSession(SessionOut):
    match: MatchOut | None = None


class Sessions(Out):
    items: list[FoundSession]
    next: str | None


class Messages(Out):
    items: list[MessageOut]
    next: str | None


class Runs(Out):
    items: list[RunOut]
    next: str | None


class FileOut(Out):
    id: str
    name: str
    media_type: str
    size: int
    created_at: datetime


class ImportedOut(Out):
    session_id: str
    title: str
    messages: int
    files: int


class Imported(Out):
    items: list[ImportedOut]
    next: str | None


class TokenOut(Out):
    id: str
    name: str
    created_at: datetime


class NewTokenOut(TokenOut):
    token: str


class Tokens(Out):
    items: list[TokenOut]
    next: str | None


class ModelOut(Out):
    id: str
    name: str
    provider: str
    context: int | None
    abilities: list[str]
    available: bool
    reason: str | None


class Models(Out):
    items: list[ModelOut]
    default: str | None


class GrantOut(Out):
    tool: str
    scope: str
    created_at: datetime


class ProviderOut(Out):
    name: str
    has_key: bool


class SettingsOut(Out):
    default_model: str | None
    tools: dict[str, Literal["allow", "ask", "deny"]]
    grants: list[GrantOut]
    providers: list[ProviderOut]
    password_set: bool
    memory: bool
    """Whether this server remembers."""
    version: str


class ModelTested(Out):
    ok: bool
    answer: str | None
    reason: str | None
    took_ms: int


class ToolOut(Out):
    name: str
    description: str
    rule: Literal["allow", "ask", "deny"]
    server: str | None


class Tools(Out):
    items: list[ToolOut]
    next: None


class McpOut(Out):
    name: str
    kind: Literal["stdio", "http"]
    target: str
    editable: bool
    connected: bool
    failure: str | None


class McpList(Out):
    items: list[McpOut]
    next: None


class McpTested(Out):
    ok: bool
    reason: str | None
    tools: list[str]


class ContextOfSession(Out):
    model: str
    used: int
    limit: int | None


class UsageOfSession(Out):
    runs: int
    input_tokens: int
    output_tokens: int
    cost: float | None


class FactOut(Out):
    id: str
    text: str
    session_id: str
    message_id: str
    created_at: datetime
    updated_at: datetime
    pinned: bool


class Facts(Out):
    items: list[FactOut]
    next: str | None


class MemoryOfSession(Out):
    dirty_turns: int
    committing: bool
    committed_turns: int
    last_error: str | None
    provider: str | None


class MemoryCommitted(MemoryOfSession):
    committed: int
    nothing_new: bool


class MemoryProviderOut(Out):
    name: str
    default: bool
    problem: str | None


class MemoryProviders(Out):
    items: list[MemoryProviderOut]


class AgentOut(Out):
    name: str
    can_continue: bool


class Agents(Out):
    items: list[AgentOut]


class Health(Out):
    status: Literal["ok"]


class Problem(Out):
    type: str
    title: str
    status: int
    detail: str
