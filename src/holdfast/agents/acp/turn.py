"""One turn of a program: sends a prompt and writes the answer to the run. Some programs deny a question by themselves
when nobody answers in time (`AgentProgram.answer_within`); it is denied here a moment earlier, so that the journal
records the denial."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio

from holdfast.agents.acp.elicitation import FormRequest
from holdfast.agents.acp.inbox import PermissionRequest, SessionUpdate, TerminalOutput, TurnEnded, TurnInbox
from holdfast.agents.acp.permission_options import options_of
from holdfast.agents.acp.program import AcpLimits, AgentProgram
from holdfast.agents.acp.updates import UpdateTranslator, turn_usage
from holdfast.agents.permissions import LateGrants, chosen_option
from holdfast.core import events as ev
from holdfast.core.errors import HoldfastError, first_error
from holdfast.ports.agent import AgentError, AgentOutput, ApprovalAnswer, Turn

if TYPE_CHECKING:
    from holdfast.agents.acp.connection import AgentConnection

_FINISH: Final = {
    "end_turn": "stop",
    "max_tokens": "length",
    "max_turn_requests": "length",
    "refusal": "content_filter",
}
_ERROR_PREFIX: Final = "Error: "
_MARGIN: Final = 1.0  # Seconds that we deny before the program does, so that the journal is first


class StaleSessionError(AgentError):
    """The program's session can no longer be used; a new one with the conversation in its prompt can."""


class RefusedError(AgentError):
    """The program refused the prompt and did nothing, as some do for an unknown session."""


@dataclass(slots=True)
class AcpTurn:
    """One prompt, from sending it to its answer."""

    program: AgentProgram
    limits: AcpLimits
    now: Callable[[], float]  # Wall time in seconds
    connection: "AgentConnection"
    turn: Turn
    out: AgentOutput
    on_allowed: Callable[[str], Awaitable[None]]
    """Called with the id of a call that the user allowed, before the program is allowed to run it."""
    translator: UpdateTranslator = field(init=False)
    has_output: bool = False
    ended_cleanly: bool = False  # Whether the program ended the turn, so that it can be prompted again
    _asking: anyio.Lock = field(default_factory=anyio.Lock)  # One question at a time is shown
    _asked: bool = False
    _grants: LateGrants = field(init=False)

    def __post_init__(self) -> None:
        self._grants = LateGrants.of_turn(self.turn)
        self.translator = UpdateTranslator(anyio.current_time)

    async def run(self, blocks: list[dict[str, Any]]) -> str | None:
        inbox = self.connection.begin_turn()
        await self.out.write(ev.StepStarted(self.turn.transcript.steps))
        try:
            async with anyio.create_task_group() as prompting:
                prompting.start_soon(self._prompt, blocks, inbox)
                try:
                    ended = await self._follow(inbox)
                except anyio.get_cancelled_exc_class():
                    await self._cancel(inbox)
                    raise
                finally:
                    if not self.ended_cleanly:
                        self.connection.close()  # ends the prompt, which is shielded
        except BaseExceptionGroup as group:
            raise first_error(group) from None
        finally:
            self.connection.end_turn()
        return await self._finish(ended, is_command=_is_command(blocks))

    async def _prompt(self, blocks: list[dict[str, Any]], inbox: TurnInbox) -> None:
        """Shielded, because a cancelled turn still waits for the program's answer for a while."""
        with anyio.CancelScope(shield=True) as scope:
            async with anyio.create_task_group() as watching:
                watching.start_soon(self._stop_when_closed, scope)
                await self.connection.prompt(blocks, inbox)
                watching.cancel_scope.cancel()

    async def _stop_when_closed(self, scope: anyio.CancelScope) -> None:
        await self.connection.closed.wait()
        await anyio.sleep(5.0)
        scope.cancel()

    async def _follow(self, inbox: TurnInbox) -> TurnEnded:
        async with anyio.create_task_group() as questions:
            while True:
                item = await inbox.get()
                match item:
                    case SessionUpdate(update):
                        for event in self.translator.translate(update):
                            await self._write(event)
                        if self.translator.open_calls > (most := self.limits.max_open_calls):
                            problem = f"has begun more than {most:,} tools that did not end"
                            raise AgentError("agent", f"The agent {self.program.name} {problem}.")
                    case TerminalOutput(terminal_id, text):
                        for event in self.translator.add_terminal_output(terminal_id, text):
                            await self._write(event)
                    case PermissionRequest():
                        questions.start_soon(self._ask, item)
                    case FormRequest():
                        questions.start_soon(self._show_form, item)
                    case TurnEnded():
                        questions.cancel_scope.cancel()
                        self.ended_cleanly = item.error is None
                        return item
        raise AssertionError

    async def _write(self, event: ev.Event) -> None:
        self.has_output = True
        if isinstance(event, ev.ToolStarted | ev.ToolFinished):
            await self.out.commit(event)
        else:
            await self.out.write(event)

    # ---- questions ----

    async def _ask(self, request: PermissionRequest) -> None:
        """Ask the person. The tool is journaled as started before the program is allowed to run it."""
        async with self._asking:
            if request.answered.is_set():
                return
            self._asked = True
            call_id, name, args = await self._call_of(request)
            options = options_of(request.options)
            allowing = chosen_option(options, ApprovalAnswer("once"))
            is_complete = self.translator.is_complete(call_id)
            if allowing is not None and is_complete and self._grants.take(name, args):
                await self.out.commit(ev.ToolStarted(call_id, name, args))
                request.answer(allowing)
                return
            within = self._time_left(request)
            expires = None if within is None else int((self.now() + within) * 1000)
            reason = f"{self.program.name} asks for permission."
            question = ev.ApprovalRequested(
                self.out.new_approval_id(), call_id, name, args, reason, options=options or None, expires_at=expires
            )
            answer = await self.out.ask(question, within, announced=True, can_allow_later=is_complete)
            if answer.decision == "deny":
                self.translator.close(call_id)
            else:
                await self.on_allowed(call_id)
                await self.out.commit(ev.ToolStarted(call_id, name, args))
            request.answer(chosen_option(options, answer))

    async def _show_form(self, request: FormRequest) -> None:
        async with self._asking:
            if request.answered.is_set():
                return
            self._asked = True
            request_id, name = self.out.new_question_id(), self.program.name
            form = ev.InputRequested(request_id, request.call_id, name, "form", request.message, request.schema)
            request.answer(await self.out.ask_during_call(form))

    async def _call_of(self, request: PermissionRequest) -> tuple[str, str, dict[str, Any]]:
        """The announced call that the question is about, or else the one that it announces."""
        call_id = self.translator.call_asked_about(request.call) or f"permission-{id(request)}"
        update = {**request.call, "sessionUpdate": "tool_call", "toolCallId": call_id, "status": None}
        for event in self.translator.translate(update):
            await self._write(event)
        return call_id, *self.translator.describe(call_id)

    def _time_left(self, request: PermissionRequest) -> float | None:
        limit = self.program.answer_within
        return None if limit is None else max(0.0, request.received_at + limit - _MARGIN - anyio.current_time())

    # ---- endings ----

    async def _cancel(self, inbox: TurnInbox) -> None:
        """Tell the program, and take what it still says for a moment. A program that does not end its turn in time, or
        that was cancelled at a question, which some do not survive, is ended; the next turn starts it again."""
        ended = None
        with anyio.CancelScope(shield=True), suppress(HoldfastError, AgentError):
            with anyio.move_on_after(self.limits.cancel_grace):
                await self.connection.cancel()
                while not isinstance(ended, TurnEnded):
                    ended = await inbox.get()
                    if isinstance(ended, SessionUpdate):
                        for event in self.translator.translate(ended.update):
                            self.out.write_nowait(event)
                    elif isinstance(ended, PermissionRequest | FormRequest):
                        ended.answer(None)
        is_over = isinstance(ended, TurnEnded) and ended.error is None
        self.ended_cleanly = is_over and not self._asked
        if isinstance(ended, TurnEnded) and (usage := self._usage(ended)) is not None:
            self.out.write_nowait(usage)

    async def _finish(self, ended: TurnEnded, *, is_command: bool) -> str | None:
        if ended.error is not None:
            raise ended.error
        name, reason = self.program.name, ended.result.get("stopReason")
        usage = self._usage(ended)
        if usage is not None:
            await self.out.write(usage)
        if reason == "cancelled":
            raise AgentError("agent-cancelled", f"The agent {name} stopped by itself. Continue, or try again.")
        if reason == "refusal" and not self.has_output:
            has_begun = self._asked or self.connection.has_called  # prompted again, it would do that twice
            raise (AgentError if has_begun else RefusedError)(
                "refusal", f"The agent {name} refused to answer. Rephrase the message, or start a new chat."
            )
        if self.program.says_errors and not isinstance(ended.result.get("usage"), dict) and not is_command:
            self.ended_cleanly = False  # it may take no other prompt
            raise AgentError("agent", f"The agent {name} failed{self._said_reason()}")
        return _FINISH.get(str(reason), "stop")

    def _said_reason(self) -> str:
        """The reason for a failure is the whole answer. A program that has already sent a part of an answer says
        none."""
        text = self.translator.answer_start.strip()
        if not self.translator.is_said_at_once or not text:
            return " and gave no reason. Its log may have one."
        return f": {text.removeprefix(_ERROR_PREFIX)}" if text.startswith(_ERROR_PREFIX) else f". It said: {text}"

    def _usage(self, ended: TurnEnded) -> ev.Usage | None:
        """What the turn used. Call it once."""
        connection, cost = self.connection, self.translator.cost
        spent = None if cost is None else max(0.0, cost - connection.cost_before)
        before, adds_up = connection.usage_before, self.program.adds_up_usage
        usage, connection.usage_before = turn_usage(ended.result.get("usage"), before, spent, adds_up=adds_up)
        connection.cost_before = connection.cost_before if cost is None else cost
        return usage


def _is_command(blocks: list[dict[str, Any]]) -> bool:
    """Whether the prompt is a command of the program's own, which uses no tokens."""
    return bool(blocks) and str(blocks[0].get("text", "")).lstrip().startswith("/")
