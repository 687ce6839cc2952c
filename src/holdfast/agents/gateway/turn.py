"""One run of a gateway, from its first event to its last."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

from holdfast.agents.gateway.client import GatewayClient, GatewayEvents
from holdfast.agents.gateway.events import GatewayQuestion, GatewayTranslator, pieces, usage_of
from holdfast.agents.permissions import LateGrants, chosen_option
from holdfast.core import events as ev
from holdfast.core.errors import first_error
from holdfast.ports.agent import AgentError, AgentOutput, ApprovalAnswer, Turn

_MARGIN: Final = 2.0  # Seconds that we deny before the gateway does, so that the journal is first
_LATEST: Final = 0.5  # Seconds before that time from which on nothing is allowed
_LAST: Final = ("run.completed", "run.failed", "run.cancelled")
_SEVERAL: Final = "It was denied, because the gateway asked several questions at once, which cannot be told apart."
_OVER: Final = (404, 409)  # The question, or its run, is over


@dataclass(slots=True)
class GatewayTurn:
    client: GatewayClient
    now: Callable[[], float]  # Wall time in seconds
    turn: Turn
    out: AgentOutput
    run_id: str | None = None  # None until the gateway has started it
    translator: GatewayTranslator = field(init=False)
    has_output: bool = False
    _grants: LateGrants = field(init=False)
    _open: tuple[anyio.CancelScope, GatewayQuestion] | None = None  # The question that a person is asked
    _asking: anyio.Lock = field(default_factory=anyio.Lock)  # A withdrawn question ends before the next one begins

    def __post_init__(self) -> None:
        self._grants = LateGrants.of_turn(self.turn)

    async def run(
        self, start: Callable[[], Awaitable[str]], on_started: Callable[[str], Awaitable[None]]
    ) -> str | None:
        """`start` makes the gateway start a run and returns its id, with which `on_started` is called. Unless the
        gateway is gone, a run that did not end is stopped, also if the turn is cancelled while it starts."""
        events: GatewayEvents | None = None
        try:
            try:
                run_id = await self._start(start, on_started)
                self.translator = GatewayTranslator(run_id, anyio.current_time)
                await self.out.write(ev.StepStarted(self.turn.transcript.steps))
                events = await self.client.events(run_id)
                last = await self._follow(events)
            except BaseExceptionGroup as group:
                raise first_error(group) from None
        except BaseException as error:
            if not isinstance(error, AgentError) or error.code != "agent-gone":
                await self._stop(events)
            raise
        finally:
            if events is not None:
                events.close()
        return await self._finish(last)

    async def _start(self, start: Callable[[], Awaitable[str]], on_started: Callable[[str], Awaitable[None]]) -> str:
        """A cancelled turn waits for the id for a moment: without it the run could not be stopped."""
        await checkpoint_if_cancelled()
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope(shield=True) as scope:
                tasks.start_soon(_end_after_cancel, scope, self.client.limits.cancel_grace)
                self.run_id = await start()
                await on_started(self.run_id)
            tasks.cancel_scope.cancel()
        await checkpoint_if_cancelled()
        assert self.run_id is not None  # only a cancel ends the scope before
        return self.run_id

    async def _follow(self, events: GatewayEvents) -> Mapping[str, Any]:
        limits, ignored = self.client.limits, 0
        async with anyio.create_task_group() as questions:
            while (event := await events.next()) is not None:
                kind = event.get("event")
                if kind in _LAST:
                    questions.cancel_scope.cancel()
                    return event
                if kind == "approval.request":
                    await self._begin_question(event, questions)
                    continue
                events_of_run = self.translator.translate(event)
                ignored = 0 if events_of_run else ignored + 1
                if ignored >= limits.max_ignored:
                    raise self.client.failure(f"sent {ignored:,} events in a row that mean nothing")
                if self.translator.open_calls > limits.max_open_calls:
                    raise self.client.failure(f"has begun more than {limits.max_open_calls:,} tools that did not end")
                for translated in events_of_run:
                    await self._write(translated)
            raise self.client.failure(
                "closed the stream of events before the run ended. Continue: the agent may still be working",
                "agent-gone",
            )
        raise AssertionError

    async def _write(self, event: ev.Event) -> None:
        self.has_output = True
        if isinstance(event, ev.ToolStarted | ev.ToolFinished):
            await self.out.commit(event)
        else:
            await self.out.write(event)

    # ---- questions ----

    async def _begin_question(self, event: Mapping[str, Any], questions: TaskGroup) -> None:
        """The gateway gives an answer to the oldest open question, and does not say which that is. So of several at
        once, each is denied: an answer must not reach another question than the one that the person saw."""
        before, question = self.translator.ask(event)
        for translated in before:
            await self._write(translated)
        if self._open is not None:
            scope, earlier = self._open
            self._open = None
            scope.cancel()
            for denied in (earlier, question):
                self.translator.close(denied.call_id)
                await self.out.commit(ev.ToolFinished(denied.call_id, _SEVERAL, True, 0))
            await self._respond({"choice": "deny", "all": True})
            return
        scope = anyio.CancelScope()
        self._open = scope, question
        questions.start_soon(self._ask, question, anyio.current_time(), scope)

    async def _ask(self, question: GatewayQuestion, received_at: float, scope: anyio.CancelScope) -> None:
        """Ask the person. The tool is journaled as started before the gateway is allowed to run it."""
        with scope:
            async with self._asking:
                started = ev.ToolStarted(question.call_id, question.name, question.args)
                if question.is_complete and self._grants.take(question.name, question.args):
                    choice = "once"
                else:
                    choice = chosen_option(question.options, await self._answer(question, received_at)) or "deny"
                within = None
                if choice == "deny":
                    self.translator.close(question.call_id)
                else:
                    await self.out.commit(started)
                    within = self._time_to_allow(received_at)
                self._open = None
                await self._respond({"choice": choice}, within)

    def _time_to_allow(self, received_at: float) -> float | None:
        """Seconds in which the gateway takes the answer, None for any time. It gives an answer to the oldest open
        question: after it has denied this one by itself, that is another one, which nobody has allowed."""
        if self.client.gateway.answer_within is None:
            return None
        left = received_at + self.client.gateway.answer_within - _LATEST - anyio.current_time()
        if left <= 0:
            raise self.client.failure(
                "may have denied a call, because your answer came too late. Continue; it may ask again",
                "agent-timeout",
            )
        return left

    async def _answer(self, question: GatewayQuestion, received_at: float) -> ApprovalAnswer:
        limit = self.client.gateway.answer_within
        within = None if limit is None else max(0.0, received_at + limit - _MARGIN - anyio.current_time())
        request = ev.ApprovalRequested(
            self.out.new_approval_id(),
            question.call_id,
            question.name,
            question.args,
            f"{self.client.gateway.name} asks for permission.",
            options=[*question.options],
            expires_at=None if within is None else int((self.now() + within) * 1000),
        )
        return await self.out.ask(request, within, announced=True, can_allow_later=question.is_complete)

    async def _respond(self, body: Mapping[str, Any], within: float | None = None) -> None:
        assert self.run_id is not None
        answer = await self.client.answer_approval(self.run_id, body, within)
        if answer.status not in (200, *_OVER):
            raise self.client.refused("take the answer to its question", answer)

    # ---- endings ----

    async def _stop(self, events: GatewayEvents | None) -> None:
        """Tell the gateway, and take what it still sends for a moment. A run that does not end in time is seen to by
        the next turn."""
        if self.run_id is None:
            return
        with anyio.CancelScope(shield=True), suppress(AgentError):
            with anyio.move_on_after(self.client.limits.cancel_grace):
                await self.client.stop_run(self.run_id)
                while events is not None and (event := await events.next()) is not None:
                    if event.get("event") in _LAST:
                        break
                    for translated in self.translator.translate(event):
                        self.out.write_nowait(translated)

    async def _finish(self, last: Mapping[str, Any]) -> str | None:
        kind, error = last.get("event"), last.get("error")
        usage = usage_of(last)
        if usage is not None:
            await self.out.write(usage)
        if kind == "run.failed":
            raise self.client.failure(
                f"reports that its run failed: {error if isinstance(error, str) else 'no reason'}"
            )
        if kind == "run.cancelled":
            name = self.client.gateway.name
            raise AgentError("agent-cancelled", f"The agent {name} stopped by itself. Continue, or try again.")
        output = last.get("output")
        if not self.translator.has_text and isinstance(output, str):
            for piece in pieces(output):  # a model that does not stream
                await self.out.write(ev.TextDelta(piece))
        return "stop"


async def _end_after_cancel(scope: anyio.CancelScope, grace: float) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        scope.deadline = anyio.current_time() + grace
