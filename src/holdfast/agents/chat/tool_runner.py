"""Runs the tool calls that a model requests: each is refused, sent for approval, or run, and journaled either way.
`tool.started` is durable before the effect and `tool.finished` after it, so a crash in between leaves the outcome
unknown, and a finished call never runs again. Whether a call needs approval: `tools.approval_policy`; how long a result
may be: `tools.result_text`; how long a call may run: each tool's own `ShellLimits`, `McpLimits` or `FetchLimits`."""

import json
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from holdfast.agents.chat.person_questions import PersonQuestions
from holdfast.agents.chat.requested_calls import MAX_CALLS, RequestedCall, repeats
from holdfast.agents.chat.run_log import RunLog
from holdfast.agents.recorded_changes import run_recorded
from holdfast.core.errors import HoldfastError, StorageFullError, first_error
from holdfast.core.events import ApprovalRequested, Decision, ToolDelta, ToolFinished, ToolStarted
from holdfast.core.parts import FilePart, ToolPart
from holdfast.core.user_questions import result_of
from holdfast.models.tool_call_assembler import args_text
from holdfast.ports.agent import AgentError, AgentOutput, Turn
from holdfast.ports.model import Media
from holdfast.ports.store import ToolGrant
from holdfast.ports.tool import AskModel, ChangeRecorder, Tool, ToolContext, ToolError, ToolResult
from holdfast.tools import approval_policy as rules
from holdfast.tools.result_text import cap_result
from holdfast.tools.schemas import argument_problem

log = logging.getLogger("holdfast.agents")

NEEDS_APPROVAL = "This tool needs your approval."
TOO_MANY_CALLS = (
    f"One answer can make {MAX_CALLS} calls. This one and those after it were not run; make them in your next answer."
)
MAY_REPEAT = "This call was interrupted and may already have taken effect. Running it again may repeat its effect."
LOST = "Part of this answer was lost, so this call may have been made before. Running it again may repeat its effect."

_CONCURRENT: Final = 8
_MAX_DELTA: Final = 32_000
_MAX_TEXT: Final = 100_000
_MAX_ARGS: Final = 500_000  # One event holds all arguments of a call, and the journal refuses events over a megabyte


@dataclass(slots=True)
class ToolRunner:
    turn: Turn
    out: AgentOutput
    log: RunLog
    tools: Mapping[str, Tool]
    policy: rules.ApprovalPolicy
    grants: rules.GrantStore
    workspace: Path
    max_repeats: int
    decisions: dict[str, Decision]  # Unused decisions by call id; each allows one start
    store_image: Callable[[Media], Awaitable[FilePart]]
    questions: PersonQuestions | None = None  # None: tools cannot ask the person
    ask_model: AskModel | None = None  # For MCP servers that send sampling requests
    changes: ChangeRecorder | None = None

    async def run_calls(self, calls: Sequence[RequestedCall]) -> None:
        """Give every call a result, in order; concurrently only if all of them are read-only."""
        if not calls:
            return
        await self._run_in_order(calls[:MAX_CALLS])
        for call in calls[MAX_CALLS:]:
            await self._refuse(call, TOO_MANY_CALLS)

    async def _run_in_order(self, calls: Sequence[RequestedCall]) -> None:
        grants = await self.grants.grants(self.turn.run.owner, self.turn.session.id)
        if len(calls) > 1 and all(self._runs_freely(call, grants) for call in calls):
            for at in range(0, len(calls), _CONCURRENT):
                await _run_together([partial(self._run_call, call, grants) for call in calls[at : at + _CONCURRENT]])
            return
        for call in calls:
            await self._run_call(call, grants)

    async def store_grants(self) -> None:
        """Store what the user's decisions allow beyond their own call. Idempotent."""
        calls = {part.call_id: part for part in self.turn.transcript.parts if isinstance(part, ToolPart)}
        for call_id, decision in self.decisions.items():
            part = calls.get(call_id)
            tool = None if part is None else self.tools.get(part.name)
            if part is None or tool is None or not isinstance(part.args, dict):
                continue
            lasts = rules.lasting(self.policy, decision, part.name)
            if lasts is not None:
                sid = self.turn.session.id if lasts == "session" else None
                await self.grants.grant(part.name, tool.scope(part.args), self.turn.run.owner, sid)

    # ---- one call ----

    def _runs_freely(self, call: RequestedCall, grants: Collection[ToolGrant]) -> bool:
        """Whether the call is read-only and needs no approval."""
        tool = self.tools.get(call.name)
        if tool is None or not tool.traits.read_only or self._refusal(call) is not None:
            return False
        return self._approval_reason(call, tool, grants) is None

    async def _run_call(self, call: RequestedCall, grants: Collection[ToolGrant]) -> None:
        refusal = self._refusal(call)
        if refusal is not None:
            await self._refuse(call, refusal)
            return
        tool = self.tools[call.name]
        if tool.traits.asks_user:
            await self._ask_user(call)
            return
        decision = self.decisions.pop(call.call_id, None)
        reason = self._approval_reason(call, tool, grants)
        if decision is None and reason is not None:
            why_not_always = rules.why_never_always(self.policy, call.name)
            why = reason if why_not_always is None else f"{reason} {why_not_always}"
            may_always = None if why_not_always is None else False
            question = (call.call_id, call.name, call.args, why, call.provider, _other_text(call), may_always)
            decision = (await self.out.ask(ApprovalRequested(self.out.new_approval_id(), *question))).decision
        if decision != "deny":
            await self._perform(call, tool)

    async def _ask_user(self, call: RequestedCall) -> None:
        """The answer is the result of the call. The run parks: its next execution begins with the result."""
        question = (call.call_id, call.name, call.args, "", call.provider, _other_text(call))
        answer = await self.out.ask(ApprovalRequested(self.out.new_user_question_id(), *question))
        await self.log.commit(ToolFinished(call.call_id, result_of(answer.decision, answer.note)))

    def _refusal(self, call: RequestedCall) -> str | None:
        """Why the call gets an error result without being run, or None."""
        tool = self.tools.get(call.name)
        if tool is None:
            return f"There is no tool named {call.name!r}. Available: {', '.join(sorted(self.tools)) or 'none'}."
        if call.invalid is not None:
            why = call.invalid[:1].upper() + call.invalid[1:].rstrip(".")
            return f"{why}. Send the arguments again as one JSON object."
        problem = argument_problem(tool.spec.parameters, call.args)
        if problem is not None:
            return problem
        if len(json.dumps(call.args)) > _MAX_ARGS:
            return f"The arguments exceed {_MAX_ARGS} characters. Split the work into smaller calls."
        if rules.rule_for(self.policy, call.name, tool.traits.rule) == "deny":
            return f"{call.name!r} is blocked by the user's tool permissions. Continue without it."
        if repeats(self.log.parts, call.call_id, call.name, call.args) >= self.max_repeats:
            return "You made this same call several times in a row. Its result will not change; do something else."
        return None

    def _approval_reason(self, call: RequestedCall, tool: Tool, grants: Collection[ToolGrant]) -> str | None:
        """Why the call needs approval, or None. A grant does not cover a call that was started and whose outcome is
        unknown, nor one that may have been made before a part of the journal was lost, unless the tool is safe to
        repeat."""
        if not tool.traits.repeatable and (call.unknown or self.turn.transcript.lost):
            return MAY_REPEAT if call.unknown else LOST
        scope = tool.scope(call.args)
        rule = rules.verdict(self.policy, call.name, tool.traits.rule, grants, scope)
        return None if rule == "allow" else NEEDS_APPROVAL

    async def _refuse(self, call: RequestedCall, why: str) -> None:
        """Record an error result without a start: nothing ran now, whatever an earlier start did."""
        if call.unknown:
            why = f"{why} The call was started before, and it is unknown whether it took effect."
        self.decisions.pop(call.call_id, None)
        again = repeats(self.log.parts, call.call_id, call.name, call.args)
        await self.log.commit(ToolFinished(call.call_id, why, is_error=True, duration_ms=0))
        if again > self.max_repeats:
            raise AgentError(
                "loop", f"Stopped: the model called {call.name!r} {again + 1} times in a row with the same arguments."
            )

    async def _perform(self, call: RequestedCall, tool: Tool) -> None:
        await self.log.commit(ToolStarted(call.call_id, call.name, call.args, call.provider, _other_text(call)))
        began = anyio.current_time()
        result = await self._run(call, tool)
        duration = int((anyio.current_time() - began) * 1000)
        files = await self._store_images(call, result)
        await self.log.commit(ToolFinished(call.call_id, result.content, result.is_error, duration, files))

    async def _store_images(self, call: RequestedCall, result: ToolResult) -> tuple[FilePart, ...]:
        """Stores what the model is shown, in this turn and in later ones: files in the workspace may change."""
        try:
            return tuple([replace(await self.store_image(each), call_id=call.call_id) for each in result.images])
        except StorageFullError:
            text = "images of tool %s were not stored: the disk is almost full"
            log.warning(text, call.name, extra=self.turn.run.log_extra)
            return ()

    async def _run(self, call: RequestedCall, tool: Tool) -> ToolResult:
        async def output(text: str) -> None:
            for at in range(0, len(text), _MAX_DELTA):
                await self.log.write(ToolDelta(call.call_id, output_delta=text[at : at + _MAX_DELTA]))

        ask_person = None if self.questions is None else partial(self.questions.ask, call.call_id)
        context = ToolContext(self.workspace, output, ask_person, self.ask_model, self.changes)
        recorder = self.changes if tool.traits.runs_programs else None
        try:
            return cap_result(await run_recorded(recorder, partial(tool.run, call.args, context)))
        except ToolError as error:
            return cap_result(ToolResult(str(error), is_error=True))
        except (HoldfastError, AgentError):
            raise  # the journal or the run failed, which no tool result can repair
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:
                raise
            return ToolResult("The tool failed: an operation it waited for was cancelled.", is_error=True)
        except Exception as error:  # the model works around a tool's bug; the log has the traceback
            log.warning("tool %s failed", call.name, exc_info=True, extra=self.turn.run.log_extra)
            return ToolResult(f"The tool failed: {type(error).__name__}: {error}"[:2000], is_error=True)


def _other_text(call: RequestedCall) -> str | None:
    """The arguments as the model wrote them, unless their compact JSON, which is sent otherwise, is the same. Longer
    texts are not kept a second time: a part must fit into one event."""
    text = call.text
    if text is None or len(text) > _MAX_TEXT or not text.lstrip().startswith("{") or text == args_text(call.args):
        return None
    return text


async def _run_together(jobs: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Run all concurrently; raise the first failure itself, because the engine decides by its type."""
    try:
        async with anyio.create_task_group() as tg:
            for job in jobs:
                tg.start_soon(job)
    except BaseExceptionGroup as group:
        raise first_error(group) from None
