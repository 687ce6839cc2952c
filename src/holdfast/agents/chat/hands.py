"""Running what the model asked for: refused, asked about, or run, and journalled either way.

`tool.started` is durable immediately before the effect and `tool.finished` after it. Between the two a crash leaves
"outcome unknown"; before, the call did not run; after, it is never run again.
"""

import json
import logging
import math
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from holdfast.agents.chat.calls import Wanted, repeats
from holdfast.agents.chat.record import Record
from holdfast.agents.tools import policy as rules
from holdfast.agents.tools.port import Tool, ToolContext, ToolFailed, ToolResult, Validator, capped
from holdfast.core.errors import HoldfastError
from holdfast.core.events import ApprovalRequested, Decision, ToolDelta, ToolFinished, ToolStarted
from holdfast.core.parts import Tool as ToolPart
from holdfast.core.values import dataclass
from holdfast.ports import AgentFailed, Out, Turn

log = logging.getLogger("holdfast.agents")

ASKS = "This tool asks before it runs."
ASKS_AGAIN = "It was started before, and how that ended is not known. Running it again may do it twice."

_AT_ONCE: Final = 8
_PIECE: Final = 32_000
_MAX_ARGS: Final = 500_000
"""One event has to hold them: the journal refuses what is over a megabyte."""


@dataclass(slots=True)
class Hands:
    turn: Turn
    out: Out
    record: Record
    tools: Mapping[str, Tool]
    policy: rules.Policy
    grants: rules.Grants
    workspace: Path
    max_repeats: int
    decisions: dict[str, Decision]
    """Answers that were not used yet: each counts for one start."""

    async def settle(self, wanted: Sequence[Wanted]) -> None:
        """Give every call an answer, in order; side by side only if none of them changes anything."""
        grants = await self.grants.granted(self.turn.run.owner, self.turn.session.id)
        if len(wanted) > 1 and all(self._is_harmless(call, grants) for call in wanted):
            for at in range(0, len(wanted), _AT_ONCE):
                await _together([partial(self._settle, call, grants) for call in wanted[at : at + _AT_ONCE]])
            return
        for call in wanted:
            await self._settle(call, grants)

    async def heed(self) -> None:
        """Keep what the person's answer allows beyond this call; to keep it twice changes nothing."""
        calls = {part.call_id: part for part in self.turn.transcript.parts if isinstance(part, ToolPart)}
        for call_id, decision in self.decisions.items():
            part = calls.get(call_id)
            tool = None if part is None else self.tools.get(part.name)
            if part is None or tool is None or not isinstance(part.args, dict):
                continue
            grant = rules.grant_of(self.policy, decision, part.name, tool.scope(part.args))
            if grant is not None:
                await self.grants.remember(self.turn.run.owner, self.turn.session.id, grant)

    # ---- one call ----

    def _is_harmless(self, call: Wanted, grants: Collection[rules.Grant]) -> bool:
        tool = self.tools.get(call.name)
        if tool is None or not tool.traits.read_only or self._refusal(call) is not None:
            return False
        return self._asks(call, tool, grants) is None

    async def _settle(self, call: Wanted, grants: Collection[rules.Grant]) -> None:
        refusal = self._refusal(call)
        if refusal is not None:
            await self._refuse(call, refusal)
            return
        tool = self.tools[call.name]
        decision = self.decisions.pop(call.call_id, None)
        reason = self._asks(call, tool, grants)
        if decision is None and reason is not None:
            question = (call.call_id, call.name, call.args, reason, call.provider)
            decision = await self.out.ask(ApprovalRequested(self.out.new_approval_id(), *question))
        if decision != "deny":
            await self._perform(call, tool)

    def _refusal(self, call: Wanted) -> str | None:
        """Why the call is answered without being run."""
        tool = self.tools.get(call.name)
        if tool is None:
            return f"There is no tool named {call.name!r}. Available: {', '.join(sorted(self.tools)) or 'none'}."
        if call.invalid is not None:
            why = call.invalid.rstrip(".")
            return f"The arguments could not be read: {why}. Write them again as one JSON object."
        problem = Validator(tool.spec.parameters).problem(call.args)
        if problem is not None:
            return problem
        if len(json.dumps(call.args)) > _MAX_ARGS:
            return f"The arguments are longer than {_MAX_ARGS} characters. Do it in several smaller calls."
        if rules.rule_for(self.policy, call.name, tool.traits.rule) == "deny":
            return f"The settings do not allow {call.name!r}. Go on without it."
        if repeats(self.record.parts, call.call_id, call.name, call.args) >= self.max_repeats:
            return "You have made this same call several times in a row. Its answer will not change; do something else."
        return None

    def _asks(self, call: Wanted, tool: Tool, grants: Collection[rules.Grant]) -> str | None:
        """The reason to ask a person, if there is one. An allowance covers calls that were not started yet: after a
        start with unknown outcome, only a tool that is safe to repeat goes without asking."""
        if call.unknown and not tool.traits.repeatable:
            return ASKS_AGAIN
        scope = tool.scope(call.args)
        found = rules.verdict(self.policy, call.name, tool.traits.rule, grants, scope)
        return None if found == "allow" else ASKS

    async def _refuse(self, call: Wanted, why: str) -> None:
        """An answer without a start: nothing ran now, whatever an earlier start did."""
        if call.unknown:
            why = f"{why} The call had been started before; whether that took effect is not known."
        self.decisions.pop(call.call_id, None)
        again = repeats(self.record.parts, call.call_id, call.name, call.args)
        await self.record.commit(ToolFinished(call.call_id, why, is_error=True, duration_ms=0))
        if again > self.max_repeats:
            raise AgentFailed(
                "loop", f"The model made the same call of {call.name!r} {again + 1} times in a row and was stopped."
            )

    async def _perform(self, call: Wanted, tool: Tool) -> None:
        await self.record.commit(ToolStarted(call.call_id, call.name, call.args, call.provider))
        began = anyio.current_time()
        result = await self._run(call, tool)
        took = int((anyio.current_time() - began) * 1000)
        await self.record.commit(ToolFinished(call.call_id, result.content, result.is_error, took))

    async def _run(self, call: Wanted, tool: Tool) -> ToolResult:
        async def output(text: str) -> None:
            for at in range(0, len(text), _PIECE):
                await self.record.write(ToolDelta(call.call_id, output_delta=text[at : at + _PIECE]))

        try:
            return capped(await tool.run(call.args, ToolContext(self.workspace, output)))
        except ToolFailed as error:
            return capped(ToolResult(str(error), is_error=True))
        except (HoldfastError, AgentFailed):
            raise  # the journal or the run itself, which no answer to the model can mend
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:
                raise
            return ToolResult("The tool failed: what it waited for was cancelled.", is_error=True)  # and not the run
        except Exception as error:  # a tool's bug is the model's to work around, and is in the log
            log.warning("tool %s failed", call.name, exc_info=True)
            return ToolResult(f"The tool failed: {type(error).__name__}: {error}"[:2000], is_error=True)


async def _together(jobs: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """All at once; the first failure is raised as itself, because the engine judges it by its type."""
    try:
        async with anyio.create_task_group() as tg:
            for job in jobs:
                tg.start_soon(job)
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
