"""What clients send. An unknown field, a wrong type or a length out of bounds is an error that names the field."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

MAX_TEXT = 1_000_000
MAX_PARTS = 100


class In(BaseModel):
    """What a client sends: an unknown field is an error that names it. `defer_build`: most checks are made of a
    model when one is first sent; all of them at once were a tenth of a start."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


Title = Annotated[str, Field(max_length=500)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Instructions = Annotated[str, Field(max_length=MAX_TEXT)]
Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=50)]
ModelSettings = Annotated[dict[str, JsonValue], Field(max_length=50)]
"""temperature, max_tokens …: passed on to the model."""


class TextIn(In):
    type: Literal["text"]
    text: Annotated[str, Field(max_length=MAX_TEXT)]


class FileIn(In):
    type: Literal["file"]
    file_id: Name


PartIn = Annotated[TextIn | FileIn, Field(discriminator="type")]
Input = (
    Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    | Annotated[list[PartIn], Field(min_length=1, max_length=MAX_PARTS)]
)


class NewSession(In):
    title: Title | None = None
    agent: Name | None = None
    model: Name | None = None
    system: Instructions | None = None
    settings: ModelSettings | None = None
    memory: Name | None = None
    """A memory provider, or `none`: nothing is recalled and nothing remembered. Also found as `settings.memory`."""
    previous_session_id: Name | None = None
    pinned: bool = False
    archived: bool = False
    tags: Tags = []
    project: Name | None = None


class SessionPatch(In):
    """Only what is named is changed; null empties what may be empty."""

    title: Title = ""
    agent: Name = ""
    model: Name | None = None
    system: Instructions | None = None
    settings: ModelSettings | None = None
    memory: Name | None = None
    pinned: bool = False
    archived: bool = False
    tags: Tags = []
    project: Name | None = None
    head: Name = ""
    """Show the branch that this message is on."""


class NewRun(In):
    input: Input
    model: Name | None = None
    agent: Name | None = None
    settings: ModelSettings | None = None
    lifetime: Literal["detached", "attached"] = "detached"
    on_busy: Literal["queue", "reject", "interrupt"] = "queue"


class ComparedRun(In):
    session_id: Name | None = None
    input: Input
    model: Name | None = None
    agent: Name | None = None
    settings: ModelSettings | None = None


class Compare(In):
    runs: Annotated[list[ComparedRun], Field(min_length=1, max_length=12)]


class EditQueued(In):
    input: Input


class ContinueRun(In):
    model: Name | None = None


class Retry(In):
    message_id: Name
    model: Name | None = None


class Edit(In):
    message_id: Name
    input: Input
    model: Name | None = None


class OneMessage(In):
    message_id: Name


class Decide(In):
    decision: Literal["once", "session", "always", "deny"]


class FactPatch(In):
    """Only what is named is changed."""

    text: Annotated[str, Field(min_length=1, max_length=4000)] = ""
    pinned: bool = False


class CommitMemory(In):
    provider: Name | None = None


class SettingsPatch(In):
    """Only what is named is changed."""

    default_model: Name | None = None
    tools: Annotated[dict[Name, Literal["allow", "ask", "deny"]], Field(max_length=500)] = {}
    """The whole table of rules, by a tool's name or a pattern like `github__*`."""


class ProviderKey(In):
    key: Annotated[str, Field(min_length=1, max_length=1000)]


class Allowance(In):
    tool: Name
    scope: Annotated[str, Field(max_length=1000)] = ""


class Login(In):
    password: Annotated[str, Field(min_length=1, max_length=1000)]


class NewPassword(In):
    current: Annotated[str, Field(max_length=1000)] | None = None
    new: Annotated[str, Field(min_length=1, max_length=1000)]


class ModelTest(In):
    model: Name


class McpIn(In):
    """A program to start, or an address."""

    command: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    args: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=50)] = []
    url: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    token: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """Sent as `Authorization: Bearer …`. It is kept and never shown again."""


class Backup(In):
    path: Annotated[str, Field(min_length=1, max_length=4000)]


class NewToken(In):
    name: Name
