"""The fold: turns a run's events into its message. Nothing else builds an assistant message. It also decides what
becomes of tool calls without a result when a run ends.

`fold(rest, fold(prefix))` equals `fold(prefix + rest)`, so the live view, the saved message, the cancelled partial and
the recovered message all come from this function, applied to more or less of the journal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, assert_never

from holdfast.core import events as ev
from holdfast.core.errors import BrokenSequenceError
from holdfast.core.ids import MessageId
from holdfast.core.parts import (
    Part,
    PlanPart,
    ReasoningPart,
    RememberedPart,
    SteeredPart,
    TextPart,
    ToolPart,
    ToolState,
)
from holdfast.core.steps import begins_by_position, open_step

CUT_SHORT: Final = ("length", "content_filter")
"""Finish reasons of answers that the model did not end itself."""
MessageStatus = Literal["streaming", "complete", "cancelled", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The message so far. `approval` is the open question, if any."""

    parts: tuple[Part, ...] = ()
    status: MessageStatus = "streaming"
    reason: str | None = None
    finish_reason: str | None = None
    error: ev.Failure | None = None
    usage: ev.Usage | None = None
    approval: ev.ApprovalRequested | None = None
    last_seq: int = 0
    model: str | None = None  # That of the newest step
    thinking_since: int | None = None  # When the current reasoning began, in milliseconds since the epoch
    lost: bool = False
    """An earlier execution's events, or those of a run that this one continues, were lost: the journal begins with
    `run.resumed`. What its tools did is unknown."""
    steps: int = 0  # Model calls that the journal records
    step_began: bool = False  # A step has begun and has no part yet
    input: ev.InputRequested | None = None  # The open question of a running tool

    @property
    def ended(self) -> bool:
        return self.status != "streaming"

    @property
    def is_cut_short(self) -> bool:
        """Whether the provider ended a complete answer before the model did."""
        return self.finish_reason in CUT_SHORT


EMPTY = Transcript()
_NO_TEXT = TextPart("")
_ENDS_REASONING = (
    ev.TextDelta,
    ev.ToolDelta,
    ev.ToolStarted,
    ev.ApprovalRequested,
    ev.StepStarted,
    ev.PlanUpdated,
    ev.MessageSteered,
)
_BREAKS_REASONING = (ev.RunEnded, ev.RunResumed, ev.MessageSeeded, ev.MemoryRecalled)
"""After these its duration is unknown: there may have been a crash in between."""


def fold(entries: Iterable[ev.Entry], onto: Transcript = EMPTY) -> Transcript:
    """The transcript after `entries`. Raises BrokenSequenceError if they do not follow `onto` or cannot be read."""
    try:
        return _fold(entries, onto)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BrokenSequenceError(
            f"The journal has an event that cannot be read ({type(error).__name__}: {error})."
        ) from error


def _fold(entries: Iterable[ev.Entry], onto: Transcript) -> Transcript:
    builder = _Builder(onto)
    quoted: list[bytes] = []  # texts of neighboring deltas, which are most of a journal
    last = builder.last_seq
    thinking = builder.thinking_since is not None
    for item in entries:
        seq, frame = item
        if seq != last + 1:
            raise BrokenSequenceError(f"Event {seq} follows event {last}: the journal has a gap.")
        text = ev.quoted_text(frame)
        if text is not None:
            if thinking:
                builder.end_reasoning(item.at)
                thinking = False
            quoted.append(text)
        else:
            builder.add_quoted(quoted)
            builder.last_seq = last
            builder.add(item.event(), item.at)
            thinking = builder.thinking_since is not None
        last = seq
    builder.add_quoted(quoted)
    builder.last_seq = last
    return builder.transcript()


def has_output(parts: Sequence[Part]) -> bool:
    """Whether the model wrote or did anything; recalled memories and what the user added do not count."""
    return any(not isinstance(part, RememberedPart | SteeredPart) for part in parts)


def steered_ids(parts: Sequence[Part]) -> frozenset[MessageId]:
    """The messages that were added to the run."""
    return frozenset(part.id for part in parts if isinstance(part, SteeredPart))


def volume(parts: Sequence[Part]) -> int:
    """Characters that were streamed as deltas."""
    texts = sum(len(part.text) for part in parts if isinstance(part, TextPart | ReasoningPart))
    return texts + sum(len(part.output) for part in parts if isinstance(part, ToolPart))


class _Builder:
    """Mutable, so that text grows by pieces and a long answer takes linear time."""

    def __init__(self, onto: Transcript) -> None:
        self.base = onto
        self.parts: list[Part] = list(onto.parts)
        self.pieces: dict[tuple[int, str], list[str]] = {}  # (part, field) -> text to be appended to it
        self.plan_at: int | None = None  # Where the plan is, once it was looked for; parts are never removed
        self.tools_at: dict[str, int] = {}  # Where the newest tool part of each call id is
        self.indexed = 0  # Parts that `tools_at` covers
        self.last_seq = onto.last_seq
        self.status: MessageStatus = onto.status
        self.ending: ev.RunEnded | None = None
        self.usage = onto.usage
        self.approval = onto.approval
        self.model = onto.model
        self.thinking_since = onto.thinking_since
        self.lost = onto.lost
        self.steps = onto.steps
        self.step_began = onto.step_began
        self.input = onto.input

    def transcript(self) -> Transcript:
        self._join()
        end = self.base if self.ending is None else self.ending
        return Transcript(
            tuple(self.parts),
            self.status,
            end.reason,
            end.finish_reason,
            end.error,
            self.usage,
            self.approval,
            self.last_seq,
            self.model,
            self.thinking_since,
            self.lost,
            self.steps,
            self.step_began,
            self.input,
        )

    def add_quoted(self, pieces: list[bytes]) -> None:
        """Add texts as JSON writes them in their frames; clears the list."""
        if pieces:
            self._check_open()
            text = ev.unquoted(pieces)
            pieces.clear()
            if text:
                self._grow(_NO_TEXT, text)

    def _check_open(self) -> None:
        if self.status != "streaming":
            raise BrokenSequenceError(f"Event {self.last_seq + 1} follows the terminal event.")

    def add(self, event: ev.Event, at: int | None = None) -> None:
        self._check_open()
        if self.thinking_since is not None:
            if isinstance(event, _ENDS_REASONING):
                self.end_reasoning(at)
            elif isinstance(event, _BREAKS_REASONING):
                self.thinking_since = None
        match event:
            case ev.TextDelta(text):
                if text:
                    self._grow(_NO_TEXT, text)
            case ev.ReasoningDelta(text, provider):
                self._reason(text, provider, at)
            case ev.StepStarted(_, model):
                self._join()
                self.model = model or self.model
                self.steps += 1
                self.step_began = not open_step(self.parts)
            case ev.RunStarted() | ev.StepRetrying() | ev.UnknownEvent():
                pass
            case ev.RunResumed():
                self.lost = self.lost or not self.last_seq
                self.input = None
                self._settle_tools({"running": "unknown", "pending": "not_run"})
            case ev.MessageSeeded(_, parts):
                self.parts.extend(parts)
                self.plan_at = None
            case ev.ToolDelta(call_id, name, args_delta, output_delta):
                self._tool_delta(call_id, name, args_delta, output_delta)
            case ev.ToolStarted():
                self._put_tool(event, "running")
            case ev.ToolFinished(call_id, result, is_error, duration_ms, files):
                self._join()
                where = self._find(call_id)
                if where is not None:
                    self.parts[where] = replace(
                        self._tool(where), state="done", result=result, is_error=is_error, duration_ms=duration_ms
                    )
                    self.parts.extend(files)
            case ev.ApprovalRequested():
                self._put_tool(event, "waiting")
                self.approval = event
            case ev.ApprovalResolved(approval_id, decision, reason):
                if self.approval is not None and self.approval.approval_id == approval_id:
                    where = self._find(self.approval.call_id)
                    if where is not None:
                        tool = self._tool(where)
                        if decision == "deny":
                            self.parts[where] = replace(tool, state="denied", result=reason, may_have_run=False)
                        else:
                            self.parts[where] = replace(tool, state="pending")
                    self.approval = None
            case ev.InputRequested():
                self.input = event
            case ev.InputResolved(request_id):
                if self.input is not None and self.input.request_id == request_id:
                    self.input = None
            case ev.MemoryRecalled(items, note):
                self.parts.append(RememberedPart(items, note))
            case ev.PlanUpdated(entries):
                self._put_plan(PlanPart(entries))
            case ev.MessageSteered(mid, text):
                self.parts.append(SteeredPart(mid, text))
            case ev.Usage():
                self.usage = ev.add_usage(self.usage, event)
            case ev.RunEnded(status):
                self._settle_tools({"running": "unknown", "pending": "not_run", "waiting": "not_run"})
                self.status, self.ending, self.approval, self.input = status, event, None, None
            case _:
                assert_never(event)

    def _grow(self, empty: TextPart | ReasoningPart, text: str) -> None:
        if not self.parts or type(self.parts[-1]) is not type(empty) or self.step_began:
            self._add_part(empty)
        self._append(len(self.parts) - 1, "text", text)

    def _add_part(self, part: TextPart | ReasoningPart | ToolPart) -> None:
        if self.steps:
            begins, self.step_began = self.step_began, False
            if begins != begins_by_position(self.parts, part):
                part = replace(part, begins_step=begins)
        self.parts.append(part)

    def end_reasoning(self, at: int | None) -> None:
        """Something else follows at `at`: the reasoning before it lasted until then."""
        since, self.thinking_since = self.thinking_since, None
        self._join()
        last = self.parts[-1] if self.parts else None
        if since is not None and at is not None and at > since and isinstance(last, ReasoningPart):
            self.parts[-1] = replace(last, duration_ms=at - since)

    def _reason(self, text: str, provider: object, at: int | None) -> None:
        """Opaque provider data closes a block of reasoning; what follows is another block."""
        last = self.parts[-1] if self.parts else None
        if isinstance(last, ReasoningPart) and last.provider is not None and (text or provider is not None):
            self.end_reasoning(at)
            self._add_part(ReasoningPart(""))
        if text or provider is not None:
            self._grow(ReasoningPart(""), text)
            if self.thinking_since is None and at is not None:
                last = self.parts[-1]
                assert isinstance(last, ReasoningPart)
                self.thinking_since = at - (last.duration_ms or 0)
        if provider is not None:
            self._join()
            last = self.parts[-1]
            assert isinstance(last, ReasoningPart)
            self.parts[-1] = replace(last, provider=provider)

    def _append(self, where: int, field: str, text: str) -> None:
        self.pieces.setdefault((where, field), []).append(text)

    def _join(self) -> None:
        for (where, field), pieces in self.pieces.items():
            part = self.parts[where]
            self.parts[where] = replace(part, **{field: getattr(part, field) + "".join(pieces)})
        self.pieces.clear()

    def _tool(self, where: int) -> ToolPart:
        part = self.parts[where]
        assert isinstance(part, ToolPart)
        return part

    def _find(self, call_id: str) -> int | None:
        """The newest tool part with this call id: providers may reuse an id in a later step."""
        for where in range(self.indexed, len(self.parts)):
            part = self.parts[where]
            if isinstance(part, ToolPart):
                self.tools_at[part.call_id] = where
        self.indexed = len(self.parts)
        return self.tools_at.get(call_id)

    def _open(self, call_id: str) -> int | None:
        where = self._find(call_id)
        return None if where is None or self._tool(where).state in ("done", "denied") else where

    def _put_tool(self, call: ev.ToolStarted | ev.ApprovalRequested, state: ToolState) -> None:
        """Starts a call or asks about it. If the call with this id may have run with other arguments, this is a new
        call. An agent that runs its own tools may ask about a call that it has already announced as started."""
        self._join()
        call_id, name, args, provider, text = call.call_id, call.name, call.args, call.provider, call.args_text
        where = self._open(call_id)
        old = None if where is None else self._tool(where)
        if where is None or old is None or (old.state == "unknown" and (old.name, old.args) != (name, args)):
            self._add_part(ToolPart(call_id, name, args, state, provider=provider, args_text=text))
            return
        again = state != "running" and (old.state in ("unknown", "running") or old.may_have_run)
        kept = old.provider if provider is None else provider
        self.parts[where] = replace(
            old, name=name, args=args, state=state, provider=kept, may_have_run=again, args_text=text
        )

    def _put_plan(self, plan: PlanPart) -> None:
        if self.plan_at is None:
            plans = (where for where, part in enumerate(self.parts) if isinstance(part, PlanPart))
            self.plan_at = max(plans, default=len(self.parts))
        self.parts[self.plan_at : self.plan_at + 1] = [plan]

    def _tool_delta(self, call_id: str, name: str | None, args: str | None, output: str | None) -> None:
        where = self._open(call_id)
        writes = name is not None or args is not None
        if where is not None and writes and self._tool(where).state in ("unknown", "not_run"):
            # The model rewrites a call that an earlier execution left behind. One that may have run stays as it is.
            if self._tool(where).state == "unknown":
                where = None
            else:
                self._join()
                before = self._tool(where)
                self.parts[where] = ToolPart(call_id, before.name, "", "pending", begins_step=before.begins_step)
        if where is None:
            where = len(self.parts)
            self._add_part(ToolPart(call_id, name or "", "", "pending"))
        elif name is not None:
            self.parts[where] = replace(self._tool(where), name=name)
        if output is not None:
            self._append(where, "output", output)
        if args is not None and isinstance(self._tool(where).args, str):
            self._append(where, "args", args)

    def _settle_tools(self, ends: dict[ToolState, ToolState]) -> None:
        self._join()
        for where, part in enumerate(self.parts):
            if isinstance(part, ToolPart) and part.state in ends:
                state = "unknown" if part.may_have_run else ends[part.state]
                self.parts[where] = replace(part, state=state, may_have_run=False)
