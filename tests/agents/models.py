"""A scripted model after the model port, tools that leave a trace, and worlds with the chat agent in them.

A model's answer is a list of pieces. It is chosen by what the model is shown, never by how often it was asked: a model
has no memory, and a run that is taken up in a new process gets the same answers.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio

from holdfast.agents.chat.agent import ChatAgent
from holdfast.agents.chat.system_prompt import CONTINUE
from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, Usage
from holdfast.core.ids import FileId, OwnerId, SessionId
from holdfast.core.model_input import ModelInput
from holdfast.core.parts import FilePart, Json, ToolPart
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.models.iterated_answer import IteratedAnswer
from holdfast.ports.agent import Summarizer, Turn
from holdfast.ports.model import (
    Ability,
    AssistantMessage,
    Delta,
    Media,
    Model,
    ModelError,
    ModelInfo,
    ModelRequest,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from holdfast.ports.store import ToolGrant
from holdfast.ports.tool import Tool, ToolContext, ToolResult, ToolTraits
from holdfast.tools.approval_policy import ApprovalPolicy
from tests.harness import AnyWorld, Running, running


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
    text: str | None = None
    """The arguments as the model writes them."""


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
Script = Callable[[ModelRequest], Sequence[Piece]]


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


def call_deltas(asks: Asks) -> list[ToolDelta]:
    text = asks.args if isinstance(asks.args, str) else asks.text or json.dumps(asks.args)
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
    requests: list[ModelRequest] = field(default_factory=list)
    upstreams: int = 0

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("test/model", "Model", "test", self.context, self.abilities)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[IteratedAnswer]:
        self.requests.append(request)
        self.upstreams += 1
        try:
            yield IteratedAnswer(partial(self._play, self.script(request)))
        finally:
            self.upstreams -= 1

    async def _play(self, pieces: Sequence[Piece], answer: IteratedAnswer) -> AsyncIterator[Sequence[Delta]]:
        for piece in pieces:
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
                    raise ModelError(code, "The provider hung up. Try again in a minute.")
                case Writes(call_id, tool, text):
                    yield [ToolDelta(call_id, tool, text)]
                case Asks():
                    answer.calls = [
                        *answer.calls,
                        ToolCall(piece.call_id, piece.name, piece.args, invalid=piece.invalid, text=piece.text),
                    ]
                    for delta in call_deltas(piece):
                        yield [delta]
        answer.finish_reason = "tool_calls" if answer.calls else "stop"


def tool_parts(message: Message) -> list[ToolPart]:
    return [part for part in message.parts if isinstance(part, ToolPart)]


def results(request: ModelRequest) -> list[ToolMessage]:
    """The tool results that a model is shown."""
    return [message for message in request.messages if isinstance(message, ToolMessage)]


def answers(*scripts: Sequence[Piece]) -> Script:
    """The nth script in the nth step of a turn: counted by what the model is shown to have asked for already."""

    def script(request: ModelRequest) -> Sequence[Piece]:
        asked = (
            n
            for n, said in enumerate(request.messages)
            if isinstance(said, UserMessage) and said.content != (CONTINUE,)
        )
        last = max(asked, default=0)
        steps = [said for said in request.messages[last:] if isinstance(said, AssistantMessage)]
        done = sum(any(isinstance(part, ToolCall) for part in said.parts) for said in steps)
        return scripts[min(done, len(scripts) - 1)]

    return script


def by_calls(*scripts: Sequence[Piece]) -> ScriptedModel:
    """The nth script once the model is shown n answers of its own."""

    def script(request: ModelRequest) -> Sequence[Piece]:
        said = [message for message in request.messages if isinstance(message, AssistantMessage)]
        return scripts[min(len(said), len(scripts) - 1)]

    return ScriptedModel(script)


@dataclass
class Trace:
    """A tool whose effect is a line in a list that outlives engines, as a file would."""

    name: str
    effects: list[str]
    traits: ToolTraits = field(default_factory=lambda: ToolTraits(rule="allow"))
    result: Json = "done"
    images: bool = False
    """Whether each call returns an image of its own."""
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
        return ToolResult(self.result, images=(image_of(args.get("x")),) if self.images else ())


def image_of(x: Json) -> Media:
    return Media(f"{x}.png", "image/png", f"picture {x}".encode())


@dataclass
class KeptGrants:
    kept: set[ToolGrant] = field(default_factory=set)

    async def grants(self, owner: OwnerId, sid: SessionId) -> list[ToolGrant]:
        return [grant for grant in self.kept if grant.owner == owner and grant.session_id in (None, sid)]

    async def grant(self, tool: str, scope: str, owner: OwnerId, sid: SessionId | None) -> None:
        self.kept.add(ToolGrant(owner, sid, tool, scope, 0.0))


@dataclass
class Shelf:
    """Attachments by name."""

    contents: dict[str, bytes] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)

    async def read(self, file: FilePart) -> bytes | None:
        self.reads.append(file.name)
        return self.contents.get(file.name)

    async def store_for_run(self, run: Run, media: Media) -> FilePart:
        self.contents[media.name] = media.data
        return FilePart(FileId(f"file_{media.name}"), media.name, media.media_type, len(media.data))


@dataclass
class Shrinking:
    """A history that is summarized when it is asked to."""

    compactions: int = 0

    async def reload(self, turn: Turn) -> ModelInput:
        return ModelInput("They talked.", turn.input.messages[-1:]) if self.compactions else turn.input

    async def compact(self, turn: Turn, summarizer: Summarizer) -> None:
        self.compactions += 1


def chat(model: Model, *tools: Tool, **options: object) -> ChatAgent:
    """The agent under test. `options` are fields of ChatAgent, or a `policy`."""
    policy = options.pop("policy", ApprovalPolicy())
    assert isinstance(policy, ApprovalPolicy)

    async def find_model(turn: Turn) -> Model:
        return model

    async def find_tools(turn: Turn) -> Sequence[Tool]:
        return tools

    async def find_policy(turn: Turn) -> ApprovalPolicy:
        return policy

    fields: dict[str, object] = {
        "find_policy": find_policy,
        "find_model": find_model,
        "find_tools": find_tools,
        "files": Shelf(),
        "grants": KeptGrants(),
        "history": Shrinking(),
        "workspaces": Path("/nonexistent"),
        **options,
    }
    return ChatAgent(**fields)  # type: ignore[arg-type]


@asynccontextmanager
async def chatting(
    world: AnyWorld | None, model: Model, *tools: Tool, **options: object
) -> AsyncIterator[tuple[Running, SessionId]]:
    """An engine with the agent under test, and a session."""
    async with running(agents={"chat": chat(model, *tools, **options)}, world=world) as it:
        yield it, await it.new_session()
