"""An agent that follows a script: for tests, the simulation, the bench and the demo. It continues exactly.

A script is data. Continuing, the agent skips what its transcript already holds: finished tools are not run again, and
one whose outcome is unknown is run again only if the script says that it is repeatable, otherwise a person is asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import assert_never

import anyio

from holdfast.agents.pace import Pace
from holdfast.agents.table import AgentTable as AgentTable  # whoever has a script needs one for it
from holdfast.core import events as ev
from holdfast.core.parts import Json, Reasoning, Text, Tool
from holdfast.core.transcript import Transcript
from holdfast.core.values import dataclass
from holdfast.ports import AgentFailed, Out, Turn


@dataclass(frozen=True, slots=True)
class Say:
    text: str
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Think:
    text: str
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Tokens:
    """`count` numbered tokens, at `rate` a second from `after` on, or as fast as they are taken."""

    count: int
    rate: float | None = None
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    index: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    call_id: str
    name: str = "tool"
    args: Json = None
    result: Json = "done"
    is_error: bool = False
    takes: float = 0.0
    output: tuple[str, ...] = ()
    writes_args: tuple[str, ...] = ()
    """Pieces of the arguments while the model writes them."""
    asks: bool = False
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Spend:
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Recall:
    items: tuple[Mapping[str, Json], ...]


@dataclass(frozen=True, slots=True)
class Meet:
    """Say that this point is reached, then wait until the test lets go."""

    name: str


@dataclass(frozen=True, slots=True)
class Hang:
    pass


@dataclass(frozen=True, slots=True)
class Fail:
    code: str = "provider"
    message: str = "The provider answered 500. Try again in a minute."


@dataclass(frozen=True, slots=True)
class Crash:
    """A bug in the agent: an exception that is none of ours."""


Action = Say | Think | Tokens | Step | Call | Spend | Recall | Meet | Hang | Fail | Crash


class Gate:
    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.open = anyio.Event()


@dataclass(slots=True)
class ScriptedAgent:
    """`script` is what every turn follows, or a function of the turn. `effects` are the tool calls that really ran."""

    script: Sequence[Action] | Callable[[Turn], Sequence[Action]]
    can_continue: bool = True
    finish_reason: str | None = "stop"
    effects: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    upstreams: int = 0
    """Calls open now: falls at the instant a run is stopped."""
    pace: Pace = field(default_factory=Pace)
    _gates: dict[str, Gate] = field(default_factory=dict)

    def gate(self, name: str) -> Gate:
        return self._gates.setdefault(name, Gate())

    async def run(self, turn: Turn, out: Out) -> str | None:
        self.turns.append(turn)
        self.upstreams += 1
        try:
            script = self.script(turn) if callable(self.script) else self.script
            await _Performance(self, turn, out).play(script)
        finally:
            self.upstreams -= 1
        return self.finish_reason


class _Performance:
    __slots__ = ("_agent", "_out", "_said", "_thought", "_tools", "_turn")

    def __init__(self, agent: ScriptedAgent, turn: Turn, out: Out) -> None:
        self._agent = agent
        self._turn = turn
        self._out = out
        self._said = _length(turn.transcript, Text)
        self._thought = _length(turn.transcript, Reasoning)
        self._tools = {part.call_id: part for part in turn.transcript.parts if isinstance(part, Tool)}

    async def play(self, script: Sequence[Action]) -> None:
        for action in script:
            await (self._tokens(action) if isinstance(action, Tokens) else self._play(action))

    async def _play(self, action: Action) -> None:
        match action:
            case Say(text, after):
                left = text[self._said :]
                self._said -= len(text) - len(left)
                await self._speak(ev.TextDelta(left), after)
            case Think(text, after):
                left = text[self._thought :]
                self._thought -= len(text) - len(left)
                await self._speak(ev.ReasoningDelta(left), after)
            case Tokens():
                await self._tokens(action)
            case Step(index):
                await self._out.write(ev.StepStarted(index))
            case Call():
                await self._call(action)
            case Spend(input_tokens, output_tokens):
                await self._out.write(ev.Usage(input_tokens, output_tokens))
            case Recall(items):
                await self._out.write(ev.MemoryRecalled(items))
            case Meet(name):
                gate = self._agent.gate(name)
                gate.reached.set()
                await gate.open.wait()
            case Hang():
                await anyio.sleep_forever()
            case Fail(code, message):
                raise AgentFailed(code, message)
            case Crash():
                raise RuntimeError("a bug in the agent")
            case _:
                assert_never(action)

    async def _speak(self, delta: ev.TextDelta | ev.ReasoningDelta, after: float) -> None:
        if delta.text:
            await anyio.sleep(after)
            await self._out.write(delta)

    async def _tokens(self, tokens: Tokens) -> None:
        pace = self._agent.pace
        start, n = pace.now() + tokens.after, self._first(tokens.count)
        while n < tokens.count:
            rest = range(n, tokens.count)
            if tokens.rate is None:
                n = next((n + 1 for n in rest if not self._token(n)), tokens.count)
            else:
                n = await pace.along(start, tokens.rate, rest, self._token)
            await self._out.room()

    def _first(self, count: int) -> int:
        """The first token that was not said, or not wholly, in an earlier life."""
        for n in range(count):
            length = len(f"t{n} ")
            if self._said < length:
                return n
            self._said -= length
        return count

    def _token(self, n: int) -> bool:
        said, self._said = self._said, 0
        return self._out.put(ev.TextDelta(f"t{n} "[said:]))

    async def _call(self, call: Call) -> None:
        before = self._tools.get(call.call_id)
        if before is not None and before.state in ("done", "denied"):
            return
        decision = self._turn.decisions.get(call.call_id)
        unknown = before is not None and before.state == "unknown" and not call.repeatable
        if before is None or before.state in ("pending", "not_run"):
            for piece in call.writes_args:
                await self._out.write(ev.ToolDelta(call.call_id, call.name, args_delta=piece))
        if (call.asks or unknown) and decision is None:
            why = "It was started before, and how it ended is not known." if unknown else "The tool asks first."
            approval_id = self._out.new_approval_id()
            decision = await self._out.ask(ev.ApprovalRequested(approval_id, call.call_id, call.name, call.args, why))
        if decision == "deny":
            return
        await self._out.commit(ev.ToolStarted(call.call_id, call.name, call.args))
        self._agent.effects.append(call.call_id)
        if call.takes:
            await anyio.sleep(call.takes)
        for piece in call.output:
            await self._out.write(ev.ToolDelta(call.call_id, output_delta=piece))
        took = int(call.takes * 1000)
        await self._out.commit(ev.ToolFinished(call.call_id, call.result, call.is_error, took))


def _length(transcript: Transcript, kind: type[Text] | type[Reasoning]) -> int:
    return sum(len(part.text) for part in transcript.parts if isinstance(part, kind))
