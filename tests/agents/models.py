"""A scripted model after the model port, tools that leave a trace, and worlds with the chat agent in them.

A model's answer is a list of pieces. It is chosen by what the model is shown, never by how often it was asked: a model
has no memory, and a run that is taken up in a new process gets the same answers.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from holdfast.agents.chat.agent import ChatAgent, Limits
from holdfast.agents.chat.files import NoFiles
from holdfast.agents.chat.prompt import GO_ON
from holdfast.agents.models.port import (
    Ability,
    AssistantSaid,
    Delta,
    Model,
    ModelFailed,
    ModelInfo,
    Request,
    Take,
    ToolCall,
    ToolSpec,
    UserSaid,
)
from holdfast.agents.tools.policy import Grant, Policy
from holdfast.agents.tools.port import Tool, ToolContext, ToolResult, Traits
from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, Usage
from holdfast.core.ids import OwnerId, SessionId
from holdfast.core.parts import Json
from holdfast.ports import Turn


@dataclass(frozen=True, slots=True)
class Asks:
    """A call that the model writes in `pieces` steps."""

    call_id: str
    name: str
    args: Json = field(default_factory=dict)
    pieces: int = 2
    invalid: str | None = None
    silent: bool = False
    """Comes whole at the end, without deltas."""
    only_name: bool = False
    """Only its name is written: no arguments are an empty object."""


@dataclass(frozen=True, slots=True)
class Thinks:
    text: str
    provider: Json = None


@dataclass(frozen=True, slots=True)
class Writes:
    """A call that the model begins to write."""

    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Says that it is here, then waits until the test lets go."""

    name: str


@dataclass(frozen=True, slots=True)
class Breaks:
    code: str = "unavailable"


Piece = str | Thinks | Asks | Writes | Wait | Breaks | Usage
Script = Callable[[Request], Sequence[Piece]]


class Gates:
    """Places where models and tools wait for the test."""

    def __init__(self) -> None:
        self._reached: dict[str, anyio.Event] = {}
        self._open: dict[str, anyio.Event] = {}

    def reached(self, name: str) -> anyio.Event:
        return self._reached.setdefault(name, anyio.Event())

    def open(self, name: str) -> anyio.Event:
        return self._open.setdefault(name, anyio.Event())

    async def wait(self, name: str) -> None:
        self.reached(name).set()
        await self.open(name).wait()


@dataclass
class ScriptedAnswer:
    pieces: Sequence[Piece]
    gates: Gates
    calls: list[ToolCall] = field(default_factory=list)
    finish_reason: str | None = None

    async def follow(self, take: Take) -> None:
        pass

    async def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        for piece in self.pieces:
            match piece:
                case str():
                    yield [TextDelta(piece)]
                case Thinks(text, provider):
                    yield [ReasoningDelta(text, provider)]
                case Usage():
                    yield [piece]
                case Wait(name):
                    await self.gates.wait(name)
                case Breaks(code):
                    raise ModelFailed(code, "The provider hung up. Try again in a minute.")
                case Writes(call_id, tool, text):
                    yield [ToolDelta(call_id, tool, text)]
                case Asks():
                    for delta in self._call(piece):
                        yield [delta]
        self.finish_reason = "tool_calls" if self.calls else "stop"

    def _call(self, asks: Asks) -> list[ToolDelta]:
        text = asks.args if isinstance(asks.args, str) else json.dumps(asks.args)
        self.calls.append(ToolCall(asks.call_id, asks.name, asks.args, invalid=asks.invalid))
        if asks.silent:
            return []
        if asks.only_name:
            return [ToolDelta(asks.call_id, asks.name)]
        half = len(text) // asks.pieces
        return [ToolDelta(asks.call_id, asks.name, text[:half]), ToolDelta(asks.call_id, None, text[half:])]


@dataclass
class ScriptedModel:
    script: Script
    abilities: frozenset[Ability] = frozenset({"tools"})
    context: int | None = None
    gates: Gates = field(default_factory=Gates)
    requests: list[Request] = field(default_factory=list)
    upstreams: int = 0

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("test/model", "Model", "test", self.context, self.abilities)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ScriptedAnswer]:
        self.requests.append(request)
        self.upstreams += 1
        try:
            yield ScriptedAnswer(self.script(request), self.gates)
        finally:
            self.upstreams -= 1


def answers(*scripts: Sequence[Piece]) -> Script:
    """The nth script in the nth step of a turn: counted by what the model is shown to have asked for already."""

    def script(request: Request) -> Sequence[Piece]:
        asked = (
            n for n, said in enumerate(request.messages) if isinstance(said, UserSaid) and said.content != (GO_ON,)
        )
        last = max(asked, default=0)
        steps = [said for said in request.messages[last:] if isinstance(said, AssistantSaid)]
        done = sum(any(isinstance(part, ToolCall) for part in said.parts) for said in steps)
        return scripts[min(done, len(scripts) - 1)]

    return script


@dataclass
class Trace:
    """A tool whose effect is a line in a list that outlives engines, as a file would."""

    name: str
    effects: list[str]
    traits: Traits = field(default_factory=lambda: Traits(rule="allow"))
    result: Json = "done"
    before: str | None = None
    """Gate before the effect."""
    after: str | None = None
    """Gate between the effect and the result."""
    gates: Gates = field(default_factory=Gates)
    raises: BaseException | None = None
    scopes: bool = False
    open_schema: bool = False

    @property
    def spec(self) -> ToolSpec:
        properties = {"x": {"type": "integer"}}
        parameters = {"type": "object", "properties": properties, "additionalProperties": self.open_schema}
        return ToolSpec(self.name, f"Does {self.name}.", parameters)

    def scope(self, args: Mapping[str, Json]) -> str:
        return str(args.get("x", "")) if self.scopes else ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        if self.before is not None:
            await self.gates.wait(self.before)
        self.effects.append(f"{self.name} {args.get('x', '')}".strip())
        await context.output("working ")
        if self.after is not None:
            await self.gates.wait(self.after)
        if self.raises is not None:
            raise self.raises
        return ToolResult(self.result)


@dataclass
class KeptGrants:
    kept: set[tuple[OwnerId, SessionId | None, Grant]] = field(default_factory=set)

    async def granted(self, owner: OwnerId, session: SessionId) -> list[Grant]:
        return [grant for who, where, grant in self.kept if who == owner and where in (None, session)]

    async def remember(self, owner: OwnerId, session: SessionId, grant: Grant) -> None:
        self.kept.add((owner, session if grant.lasts == "session" else None, grant))


def chat(model: Model, *tools: Tool, **options: object) -> ChatAgent:
    """The agent under test. `options` are fields of ChatAgent, or a `policy`."""
    policy = options.pop("policy", Policy())
    assert isinstance(policy, Policy)

    async def find_model(name: str | None) -> Model:
        return model

    async def find_tools(turn: Turn) -> Sequence[Tool]:
        return tools

    async def find_policy(turn: Turn) -> Policy:
        return policy

    fields: dict[str, object] = {
        "find_policy": find_policy,
        "find_model": find_model,
        "find_tools": find_tools,
        "files": NoFiles(),
        "workspaces": Path("/nonexistent"),
        **options,
    }
    return ChatAgent(**fields)  # type: ignore[arg-type]


def limits(**fields: object) -> Limits:
    return Limits(**fields)  # type: ignore[arg-type]
