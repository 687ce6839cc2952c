"""Agents that follow the plan's scripts and check what the engine promises them; a summarizer and a titler."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import anyio

from holdfast.agents.scripted_agent import Action, CallTool, ScriptedAgent, TakeSteering
from holdfast.core import events as ev
from holdfast.core.events import ApprovalRequested, Event
from holdfast.core.ids import RunId
from holdfast.core.session import Message
from holdfast.core.transcript import has_output
from holdfast.ports.agent import AgentError, AgentOutput, ApprovalAnswer, Turn
from tests.sim.ledger import Ledger
from tests.sim.plan import Brittle, Once, Script


def script_of(text: str, scripts: Sequence[Script]) -> Script:
    """A user message says at its end which script answers it."""
    return scripts[int(text.rpartition("/")[2])]


def asking(serial: int, script: int) -> str:
    return f"question {serial} /{script}"


def with_steps(actions: Sequence[Action]) -> list[Action]:
    """Takes what was added before the first action and after every tool."""
    found: list[Action] = [TakeSteering()]
    for action in actions:
        found += [action, TakeSteering()] if isinstance(action, CallTool) else [action]
    return found


def calls_of(script: Script) -> dict[str, CallTool]:
    return {action.call_id: action for action in script if isinstance(action, CallTool)}


class Effects(list[str]):
    """Where the scripted agent writes that a tool really ran."""

    def __init__(self, ledger: Ledger, run: RunId, calls: dict[str, CallTool]) -> None:
        super().__init__()
        self._ledger = ledger
        self._run = run
        self._calls = calls

    def append(self, call_id: str) -> None:
        self._ledger.effect(self._run, call_id, self._calls[call_id].repeatable)


class CheckedOut:
    """Checks that an event is in the journal when `commit` returns."""

    def __init__(self, inner: AgentOutput, ledger: Ledger, run: RunId) -> None:
        self._inner = inner
        self._ledger = ledger
        self._run = run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(self, event: Event) -> None:
        await self._inner.commit(event)
        story = self._ledger.stories.get(self._run)
        if story is None or event not in story.events:
            self._ledger.blame(f"{self._run}: commit returned and {event} is not in the journal")

    async def ask(self, question: ApprovalRequested, answer_within: float | None = None) -> ApprovalAnswer:
        answer = await self._inner.ask(question, answer_within)
        story = self._ledger.stories[self._run]
        if ev.ApprovalResolved(question.approval_id, *answer) not in story.events:
            self._ledger.blame(f"{self._run}: went on after a decision that is not in the journal")
        return answer


@dataclass(frozen=True, slots=True)
class SimAgent:
    can_park: bool
    can_resume: bool
    scripts: Sequence[Script]
    ledger: Ledger
    can_steer: bool = True

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        ledger, run = self.ledger, turn.run
        question = ledger.asked[run.user_message_id]
        script = script_of(question, self.scripts)
        self._check_input(turn)
        again = has_output(turn.transcript.parts) or run.epoch > 1
        actions: list[Action] = []
        for action in script:
            if isinstance(action, Once):
                actions += [] if again else [action.action]
            elif not isinstance(action, Brittle):
                actions.append(action)
        if self.can_steer:
            actions = with_steps(actions)
        effects = Effects(ledger, run.id, calls_of(script))
        inner = ScriptedAgent(actions, can_park=self.can_park, can_resume=self.can_resume, effects=effects)
        try:
            return await inner.run(turn, cast(AgentOutput, CheckedOut(out, ledger, run.id)))
        except anyio.get_cancelled_exc_class():
            execution = out._apply_intent.__self__  # type: ignore[attr-defined]
            stop = execution._stop
            if stop is not None and stop.kind == "lost":
                ledger.situations["lease lost"] += 1
            if Brittle() in script:
                raise AgentError("broke", "The connection broke while it was being closed.") from None
            raise
        finally:
            ledger.reached(run.id)

    def _check_input(self, turn: Turn) -> None:
        shown = turn.input.messages
        asked = turn.run.user_message_id
        if shown and shown[-1].id == asked:
            return
        if turn.session.head is None and not shown:
            return  # cleared under its feet
        self.ledger.blame(f"{turn.run.id}: the agent is not shown the question {asked}, but {[m.id for m in shown]}")


@dataclass(frozen=True, slots=True)
class SlowWriter:
    """Generates summaries and titles slowly."""

    takes: float
    words: str

    async def summarize(self, messages: Sequence[Message], earlier: str | None) -> str:
        await anyio.sleep(self.takes)
        return f"{self.words} of {len(messages)}"

    async def title(self, messages: Sequence[Message]) -> str:
        await anyio.sleep(self.takes)
        return self.words
