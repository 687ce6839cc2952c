"""An agent that follows a script, for tests, the simulation, benchmarks and the demo. When it continues, it skips what
the transcript already holds; a tool with an unknown outcome runs again only if it is marked repeatable, or asks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import anyio

from holdfast.core import events as ev
from holdfast.core.parts import Json, ReasoningPart, TextPart, ToolPart
from holdfast.core.transcript import steered_ids
from holdfast.core.user_questions import result_of
from holdfast.ports.agent import AgentError, AgentOutput, Turn


@dataclass(frozen=True, slots=True)
class Say:
    text: str
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Think:
    text: str
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class SayTokens:
    """`count` numbered tokens, at `rate` per second, or as fast as they are accepted."""

    count: int
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class CallTool:
    call_id: str
    name: str = "tool"
    args: Json = None
    result: Json = "done"
    is_error: bool = False
    takes: float = 0.0
    output: tuple[str, ...] = ()
    writes_args: tuple[str, ...] = ()  # Deltas of the arguments while the model writes them
    asks: bool = False
    answer_within: float | None = None
    repeatable: bool = False
    asks_user: bool = False  # It is a question to the user, whose answer is its result
    form: Json = None  # The schema of a form that its server asks for while it runs; the result is the answer


@dataclass(frozen=True, slots=True)
class TakeSteering:
    """A step begins: what the user has added is journaled."""


@dataclass(frozen=True, slots=True)
class Meet:
    """Signal that this point is reached, then wait until the test opens the gate."""

    name: str


@dataclass(frozen=True, slots=True)
class Hang:
    pass


@dataclass(frozen=True, slots=True)
class Fail:
    code: str = "provider"
    message: str = "The provider answered 500. Try again in a minute."


@dataclass(frozen=True, slots=True)
class Finish:
    """The finish reason of the answer, unless the turn continues an earlier one."""

    reason: str


@dataclass(frozen=True, slots=True)
class Crash:
    """A bug in the agent: an unexpected exception."""


PlainEvent = ev.StepStarted | ev.StepRetrying | ev.Usage | ev.MemoryRecalled | ev.PlanUpdated
Action = Say | Think | SayTokens | CallTool | PlainEvent | TakeSteering | Meet | Hang | Fail | Finish | Crash
"""An event stands for itself: it is written as it is."""


class Gate:
    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.open = anyio.Event()


@dataclass(slots=True)
class ScriptedAgent:
    """`script` is what every turn follows, or a function of the turn. `effects` lists the tool calls that ran."""

    script: Sequence[Action] | Callable[[Turn], Sequence[Action]]
    can_park: bool = True
    can_resume: bool = True
    can_steer: bool = True
    finish_reason: str | None = "stop"
    effects: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    upstreams: int = 0  # Open upstream calls; decreases at the instant a run is stopped
    _gates: dict[str, Gate] = field(default_factory=dict)

    def gate(self, name: str) -> Gate:
        return self._gates.setdefault(name, Gate())

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        self.turns.append(turn)
        self.upstreams += 1
        try:
            runner = _ScriptRunner(self, turn, out)
            for action in self.script(turn) if callable(self.script) else self.script:
                await runner.play(action)
        finally:
            self.upstreams -= 1
        return runner.finish_reason


class _ScriptRunner:
    __slots__ = (
        "_agent",
        "_out",
        "_reasoning_emitted",
        "_steered",
        "_text_emitted",
        "_tools",
        "_turn",
        "finish_reason",
    )

    def __init__(self, agent: ScriptedAgent, turn: Turn, out: AgentOutput) -> None:
        self._agent = agent
        self._turn = turn
        self._out = out
        self.finish_reason = agent.finish_reason
        parts = turn.transcript.parts
        self._text_emitted = sum(len(part.text) for part in parts if isinstance(part, TextPart))
        self._reasoning_emitted = sum(len(part.text) for part in parts if isinstance(part, ReasoningPart))
        self._steered = set(steered_ids(parts))
        self._tools = {part.call_id: part for part in parts if isinstance(part, ToolPart)}

    async def play(self, action: Action) -> None:
        match action:
            case Say(text, after):
                await self._emit_delta(ev.TextDelta(self._remaining_text(text)), after)
            case Think(text, after):
                left = text[self._reasoning_emitted :]
                self._reasoning_emitted -= len(text) - len(left)
                await self._emit_delta(ev.ReasoningDelta(left), after)
            case SayTokens():
                await self._tokens(action)
            case CallTool():
                await self._call(action)
            case ev.StepStarted() | ev.StepRetrying() | ev.Usage() | ev.MemoryRecalled() | ev.PlanUpdated():
                await self._out.write(action)
            case TakeSteering():
                await self._take_steering()
            case Meet(name):
                gate = self._agent.gate(name)
                gate.reached.set()
                await gate.open.wait()
            case Hang():
                await anyio.sleep_forever()
            case Fail(code, message):
                raise AgentError(code, message)
            case Finish(reason):
                if not self._turn.transcript.parts:
                    self.finish_reason = reason
            case Crash():
                raise RuntimeError("a bug in the agent")
            case _:
                assert_never(action)

    async def _take_steering(self) -> None:
        for event in await self._out.take_steering(self._steered):
            await self._out.commit(event)
            self._steered.add(event.id)

    async def _emit_delta(self, delta: ev.TextDelta | ev.ReasoningDelta, after: float) -> None:
        if delta.text:
            await anyio.sleep(after)
            await self._out.write(delta)

    async def _tokens(self, tokens: SayTokens) -> None:
        start = anyio.current_time()
        for n in range(tokens.count):
            left = self._remaining_text(f"t{n} ")
            if left and tokens.rate is not None:
                await anyio.sleep_until(start + n / tokens.rate)
            if left and not self._out.write_nowait(ev.TextDelta(left)):
                await self._out.wait_for_room()
        await self._out.wait_for_room()

    def _remaining_text(self, text: str) -> str:
        """The rest of the next text, without what an earlier execution emitted."""
        left = text[self._text_emitted :]
        self._text_emitted -= len(text) - len(left)
        return left

    async def _call(self, call: CallTool) -> None:
        before = self._tools.get(call.call_id)
        if before is not None and before.state in ("done", "denied"):
            return
        decision = self._turn.decisions.get(call.call_id)
        lost = before is None and self._turn.transcript.lost
        unknown = (lost or (before is not None and before.state == "unknown")) and not call.repeatable
        if before is None or before.state in ("pending", "not_run"):
            for piece in call.writes_args:
                await self._out.write(ev.ToolDelta(call.call_id, call.name, args_delta=piece))
        if call.asks_user:
            asked = ev.ApprovalRequested(self._out.new_user_question_id(), call.call_id, call.name, call.args)
            decided = await self._out.ask(asked)
            await self._out.commit(ev.ToolFinished(call.call_id, result_of(decided.decision, decided.note)))
            return
        if (call.asks or unknown) and decision is None:
            why = "It was started before and its outcome is unknown." if unknown else "The tool needs approval."
            approval_id = self._out.new_approval_id()
            question = ev.ApprovalRequested(approval_id, call.call_id, call.name, call.args, why)
            decision = (await self._out.ask(question, call.answer_within)).decision
        if decision == "deny":
            return
        await self._out.commit(ev.ToolStarted(call.call_id, call.name, call.args))
        self._agent.effects.append(call.call_id)
        if call.takes:
            await anyio.sleep(call.takes)
        for piece in call.output:
            await self._out.write(ev.ToolDelta(call.call_id, output_delta=piece))
        duration, result = int(call.takes * 1000), call.result
        if call.form is not None:
            request_id = self._out.new_question_id()
            form = ev.InputRequested(request_id, call.call_id, "harbour", "form", "Which berth?", call.form)
            answer = await self._out.ask_during_call(form)
            result = {"action": answer.action, **answer.content}
        await self._out.commit(ev.ToolFinished(call.call_id, result, call.is_error, duration))
