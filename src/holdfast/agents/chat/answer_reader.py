"""Reads one model answer into the run log; one without output fails (a whole run without output: `engine.executor`).
Time limits of the model's answer: `models.request_policy`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from holdfast.agents.chat.inline_reasoning import InlineReasoning
from holdfast.agents.chat.overlap_trimmer import OverlapTrimmer
from holdfast.agents.chat.requested_calls import MAX_CALLS, RequestedCall
from holdfast.agents.chat.run_log import RunLog
from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, Usage
from holdfast.core.parts import ToolPart
from holdfast.core.steps import unfinished_text
from holdfast.models.tool_call_assembler import args_text, claim_id
from holdfast.ports.agent import AgentError
from holdfast.ports.model import Delta, Model, ModelRequest, ToolCall, UserMessage


class AnswerReader:
    """Writes deltas to the run log as they arrive and collects the requested calls. Of too many calls, only those to
    run and one to refuse are kept.

    Call ids are made unique within the message: some servers number calls from zero in every answer, and a call that
    has a result must not be mistaken for a new one."""

    def __init__(self, log: RunLog, request: ModelRequest) -> None:
        self._log = log
        self._request = replace(request, on_retry=log.write_nowait)
        self._partial = unfinished_text(log.parts)
        asked_to_continue = self._partial is not None and isinstance(request.messages[-1], UserMessage)
        self._inline = InlineReasoning()
        self._trimmer = OverlapTrimmer(self._partial or "" if asked_to_continue else "")
        self._used = {part.call_id for part in log.parts if isinstance(part, ToolPart)}
        self._ids: dict[str, str] = {}
        self._with_args: set[str] = set()
        self.has_output = False

    async def read(self, model: Model) -> tuple[list[RequestedCall], str | None]:
        """Begin a step and read its whole answer. Returns the requested calls and the finish reason."""
        await self._log.close_reasoning()
        await self._log.begin_step(model.info.id)
        async with model.stream(self._request) as upstream:
            async for deltas in upstream:
                if self.take(deltas):
                    await upstream.follow(self.take)  # between waits, deltas are pushed without waking this task
                await self._log.wait_for_room()
            calls, finish_reason = upstream.calls, upstream.finish_reason
        requested = await self._finish(calls)
        if not self.has_output and self._partial is None:
            raise AgentError("empty-answer", "The model returned an empty answer. Try again.")
        return requested, finish_reason

    def take(self, deltas: Sequence[Delta]) -> bool:
        """Add deltas without waiting. False: await the log's `wait_for_room` before the next."""
        plain = self._inline.done and self._trimmer.done
        if plain and len(deltas) == 1 and type(delta := deltas[0]) is TextDelta and delta.text:  # a token
            self.has_output = True
            return self._log.write_nowait(delta)
        room = True
        for delta in deltas:
            room = self._take(delta)
        return room

    def _take(self, delta: Delta) -> bool:
        match delta:
            case TextDelta(text):
                self.has_output = self.has_output or bool(text)
                return self._write(self._inline.take(text)) if text else True
            case ReasoningDelta():
                self.has_output = True
                self._write(self._inline.end())
                return self._log.write_nowait(delta)
            case ToolDelta(call_id, name, args):
                self.has_output = True
                self._end_text()
                if call_id not in self._ids and len(self._ids) > MAX_CALLS:
                    return True
                if args:
                    self._with_args.add(call_id)
                return self._log.write_nowait(ToolDelta(self._unique_id(call_id), name, args))
            case Usage():
                return self._log.write_nowait(delta)
            case _:
                assert_never(delta)

    async def _finish(self, calls: Sequence[ToolCall]) -> list[RequestedCall]:
        """The requested calls. Writes what did not arrive as deltas, so that all calls are journaled completely before
        the first one runs."""
        self._end_text()
        await self._log.wait_for_room()
        requested: list[RequestedCall] = []
        for call in calls[: MAX_CALLS + 1]:
            name = None if call.call_id in self._ids else call.name
            call_id = self._unique_id(call.call_id)
            if call.call_id not in self._with_args:
                await self._log.write(ToolDelta(call_id, name, call.text or args_text(call.args)))
            requested.append(RequestedCall(call_id, call.name, call.args, call.provider, call.invalid, call.text))
        self.has_output = self.has_output or bool(requested)
        return requested

    def _write(self, deltas: Sequence[TextDelta | ReasoningDelta]) -> bool:
        room = True
        for delta in deltas:
            if isinstance(delta, ReasoningDelta):
                room = self._log.write_nowait(delta)
            elif text := self._trimmer.take(delta.text):
                room = self._log.write_nowait(TextDelta(text))
        return room

    def _end_text(self) -> None:
        self._write(self._inline.end())
        if text := self._trimmer.end():
            self._log.write_nowait(TextDelta(text))

    def _unique_id(self, call_id: str) -> str:
        if call_id not in self._ids:
            self._ids[call_id] = claim_id(call_id, self._used)
        return self._ids[call_id]
