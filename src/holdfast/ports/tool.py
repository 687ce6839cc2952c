"""The tool port. A tool describes itself and runs; the agent loop decides whether it runs and journals it. A tool
catches only its own failures: cancellation ends it at once, and it leaves nothing running. Whether a call needs
approval: `tools.approval_policy`; whether one may be repeated after a crash: `ToolTraits.repeatable`, which each tool
sets (those of MCP servers: `tools.mcp.tool_mapping`)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from holdfast.core.events import InputKind
from holdfast.core.parts import Json
from holdfast.ports.agent import InputAnswer
from holdfast.ports.model import Media, ModelRequest, ToolSpec

Rule = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """A question of a tool's server to the person: a form to fill in, or permission to use the model."""

    server: str
    kind: InputKind
    message: str
    schema: Mapping[str, Json] | None = None  # Of a form (`core.form_schema`)


@dataclass(frozen=True, slots=True)
class SampledAnswer:
    """The answer of the run's model to a tool's server."""

    text: str
    model: str
    finish_reason: str | None


AskPerson = Callable[[PersonQuestion], Awaitable[InputAnswer]]
AskModel = Callable[[ModelRequest], Awaitable[SampledAnswer]]  # Raises ModelError


class ChangeRecorder(Protocol):
    """Keeps what files are before a run changes them. Blocking: called from worker threads. Durable when it returns;
    what it cannot keep does not keep a tool from working."""

    def before_write(self, names: tuple[bytes, ...], data: bytes) -> None:
        """A file of the workspace is about to be replaced by, or created with, `data`."""

    def after_write(self, names: tuple[bytes, ...]) -> None: ...
    def before_program(self) -> None:
        """A program is about to run that may change any file of the workspace."""

    def after_program(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    workspace: Path  # The session's directory. It may not exist yet; a tool that needs it creates it.
    output: Callable[[str], Awaitable[None]]  # Shows what the tool prints; waits while the journal is behind
    ask_person: AskPerson | None = None  # None: nobody can be asked
    ask_model: AskModel | None = None
    changes: ChangeRecorder | None = None  # None: they are not recorded


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model receives: text or a JSON value, and images if it can see them."""

    content: Json
    is_error: bool = False
    images: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """What is known about a tool before it runs."""

    repeatable: bool = False  # Safe to run again if it is unknown how the last run ended
    read_only: bool = False  # Changes nothing, so several calls may run concurrently
    rule: Rule = "ask"  # The default rule, used if no other is set
    runs_programs: bool = False  # A call may change any file of the workspace
    asks_user: bool = False  # A call is a question to the user: it is not run, and the answer is its result
    instructions: str = ""  # What its MCP server tells models about its tools


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    @property
    def traits(self) -> ToolTraits: ...

    def scope(self, args: Mapping[str, Json]) -> str:
        """What a grant for this call would cover (a host, for example); empty for the tool as a whole."""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        """Runs the call. `args` matches the schema. An exception becomes an error result that the model reads."""


class ToolError(Exception):
    """The call failed. The message tells the model what was wrong and what to try."""
