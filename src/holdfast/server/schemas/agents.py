"""Agents: the built-in ones and those that run as programs of their own. Which there are: `app.agents`,
`app.agent_programs`."""

from typing import Annotated

from pydantic import Field

from holdfast.server.schemas.base import RequestModel, ResponseModel
from holdfast.server.schemas.sessions import WorkingDirectory
from holdfast.server.schemas.settings import VariableName


class AgentResponse(ResponseModel):
    name: str
    can_continue: bool
    can_steer: Annotated[bool, Field(description="Whether text can be added to its active run.")] = False
    is_program: bool
    """Whether it is a program of its own, or behind a gateway, with its own model and tools."""
    available: bool
    reason: str | None
    test_failed: Annotated[
        bool, Field(description="Whether a program that is there is not available because its last test failed.")
    ] = False
    command: Annotated[list[str], Field(description="The program and its arguments.")] = Field(default_factory=list)
    url: Annotated[str | None, Field(description="The address of a gateway, instead of a program.")] = None
    cwd: str | None = None
    env: list[str] = Field(default_factory=list)  # Names of variables; their values are never returned
    editable: Annotated[bool, Field(description="Whether it was added here, and can be changed and removed.")] = False
    npx_command: Annotated[
        list[str] | None,
        Field(
            description="A command that would download and start a missing program. It is never run by itself; what "
            "npx has downloaded before is available and needs none."
        ),
    ] = None


class AgentListResponse(ResponseModel):
    items: list[AgentResponse]


class AgentRequest(RequestModel):
    """A program that speaks the Agent Client Protocol."""

    command: Annotated[str, Field(min_length=1, max_length=1000)]
    args: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=50)] = Field(default_factory=list)
    env: Annotated[
        dict[VariableName, Annotated[str, Field(max_length=10_000)] | None] | None,
        Field(
            max_length=50,
            description="Environment variables of the program. They are stored and never returned; null keeps a value.",
        ),
    ] = None
    cwd: Annotated[str, Field(min_length=1, max_length=1000)] | None = None


class AgentTestResponse(ResponseModel):
    ok: bool
    reason: str | None
    program: str | None
    version: str | None
    capabilities: Annotated[list[str], Field(description="What the program says it can do.")]
    login: list[str]
    """The ways to log in that the program names; it may be logged in already."""
    login_required: Annotated[bool, Field(description="Whether it opened no session because it needs a login.")]
    session_problem: Annotated[str | None, Field(description="Why it opened no session.")]
    took_ms: int


class AgentOptionChoiceResponse(ResponseModel):
    id: str
    name: str
    description: str


class AgentOptionResponse(ResponseModel):
    id: str
    name: str
    category: Annotated[str, Field(description="`mode`, `model`, `thought_level`, another kind, or empty.")]
    value: str | bool
    default: Annotated[str | bool, Field(description="The value in a new session of the program.")]
    choices: list[AgentOptionChoiceResponse]


class AgentCommandResponse(ResponseModel):
    name: str
    description: str
    hint: Annotated[str | None, Field(description="What to type after it; null if it takes nothing.")]


class AgentOptionsResponse(ResponseModel):
    """What an agent program offers in a session, as far as it is known: from its last session, or a test."""

    options: list[AgentOptionResponse]
    commands: list[AgentCommandResponse]


class AgentDirectoryRequest(RequestModel):
    path: WorkingDirectory


class AgentDirectoryResponse(ResponseModel):
    path: Annotated[str, Field(description="The directory, with symbolic links resolved.")]


class AgentDirectoriesResponse(ResponseModel):
    allowed: Annotated[list[str], Field(description="One of these, or a directory inside one, can be chosen.")]
    recent: Annotated[list[str], Field(description="Directories of recent sessions, newest first.")]
