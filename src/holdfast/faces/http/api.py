"""What the routes work with: one value, made by whoever builds the app."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import field
from typing import Annotated, Literal, Protocol

from fastapi import Header, Path, Query

from holdfast.core.errors import Invalid
from holdfast.core.ids import FileId, SessionId
from holdfast.core.parts import Part, Text
from holdfast.core.values import dataclass
from holdfast.engine.engine import Engine
from holdfast.engine.library import Library
from holdfast.engine.service import Service
from holdfast.faces.http.copying import MakeBackup
from holdfast.faces.http.gate import Gate
from holdfast.faces.http.requests import FileIn, Input, TextIn
from holdfast.faces.http.stream import Line
from holdfast.ports import Summariser

MIB = 1024 * 1024


class ModelInfo(Protocol):
    """A model as the list shows it."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def context(self) -> int | None: ...
    @property
    def abilities(self) -> Collection[str]: ...
    @property
    def available(self) -> bool: ...
    @property
    def reason(self) -> str | None: ...


class Models(Protocol):
    async def list(self) -> Sequence[ModelInfo]: ...
    async def default(self) -> str | None: ...
    def providers(self) -> Sequence[tuple[str, bool]]:
        """Names of those that are configured or could be, and whether there is a key."""

    async def knows(self, model: str) -> frozenset[str]:
        """The settings that reach this model, and `tools`, `images` and `documents` if it can be given any. NotFound:
        there is no such model."""

    async def set_key(self, provider: str, key: str | None) -> None:
        """Kept in the keyring; counts from the next answer on. Invalid: there is no such provider."""


@dataclass(frozen=True, slots=True)
class ToolInfo:
    name: str
    description: str
    rule: Literal["allow", "ask", "deny"]
    """What it does where nobody has settled it."""
    server: str | None
    """The MCP server that it comes from."""


@dataclass(frozen=True, slots=True)
class McpInfo:
    name: str
    kind: Literal["stdio", "http"]
    target: str
    """What is started, or where it is."""
    editable: bool
    """Whether it was added here; others are in the configuration."""
    connected: bool
    failure: str | None


class Workshop(Protocol):
    """What agents work with: to be looked at, tried and changed."""

    async def try_model(self, model: str) -> str:
        """One word of the model's. AgentFailed: in words that a person can act on."""

    async def tools(self) -> Sequence[ToolInfo]: ...
    async def servers(self) -> Sequence[McpInfo]: ...
    async def try_server(self, name: str) -> Sequence[str]:
        """Connect now; the names of its tools. NotFound; AgentFailed."""

    async def put_server(
        self, name: str, *, command: str | None, args: Sequence[str], url: str | None, token: str | None
    ) -> None:
        """From the next run on. Invalid."""

    async def drop_server(self, name: str) -> None:
        """NotFound; NotAllowed for one that the configuration names."""


@dataclass(frozen=True, slots=True)
class Limits:
    max_body: int = 8 * MIB
    max_file: int = 50 * MIB
    line: Line = field(default_factory=Line)


@dataclass(frozen=True, slots=True)
class Api:
    engine: Engine
    gate: Gate
    agents: Sequence[tuple[str, bool]]
    """Names, and whether each can continue."""
    models: Models | None = None
    meter: Callable[[SessionId], Awaitable[tuple[str, int, int | None]]] | None = None
    """Of a session: its model, how many tokens of the context are used, by an estimate, and how many there are."""
    summariser: Callable[[SessionId], Awaitable[Summariser]] | None = None
    workshop: Workshop | None = None
    backup: MakeBackup | None = None
    """Copies everything; None where the storage has its own means for that."""
    limits: Limits = field(default_factory=Limits)
    answered: "Counter[tuple[str, int]]" = field(default_factory=Counter)
    """Requests by method and status."""

    @property
    def service(self) -> Service:
        return self.engine.service

    @property
    def library(self) -> Library:
        assert self.engine.library is not None
        return self.engine.library


Sid = Annotated[str, Path(max_length=200, description="Id of a session.")]
Rid = Annotated[str, Path(max_length=200, description="Id of a run.")]
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=500, description="The `next` of the page before.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="A repeat with the same key yields the same run.",
    ),
]
IfMatch = Annotated[str | None, Header(max_length=100, description="Only if the session is at this version.")]


def version(if_match: str | None) -> int | None:
    """`"7"`, `W/"7"` or `7`; `*` matches any version, as none does."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Invalid("If-Match", 'names a session\'s version, like "7"')
    return int(text)


async def read_input(given: Input, library: Library) -> list[Part]:
    """What a person sends, as parts. Files are named by id; what they are is known here."""
    if isinstance(given, str):
        return [Text(given)]
    parts: list[Part] = []
    for item in given:
        match item:
            case TextIn(text=text):
                parts.append(Text(text))
            case FileIn(file_id=fid):
                parts.append((await library.file(FileId(fid))).part())
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise Invalid("input", "is empty; say something or attach a file")
    return parts
