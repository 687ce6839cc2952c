"""The fold: a run's events become its message. There is no other way to build an assistant message.

`fold(rest, fold(prefix))` equals `fold(prefix + rest)`, so the live view, the saved message, the cancelled partial
and the recovered message are the same function over more or less of the journal.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, assert_never

from holdfast.core import events as ev
from holdfast.core.errors import BrokenSequence
from holdfast.core.parts import Part, Reasoning, Remembered, Text, Tool, ToolState
from holdfast.core.values import dataclass, replace

MessageStatus = Literal["streaming", "complete", "cancelled", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Transcript:
    """What the journal says so far. `approval` is the question that is still open, if any."""

    parts: tuple[Part, ...] = ()
    status: MessageStatus = "streaming"
    reason: str | None = None
    finish_reason: str | None = None
    error: ev.Failure | None = None
    usage: ev.Usage | None = None
    approval: ev.ApprovalRequested | None = None
    last_seq: int = 0
    thinking_since: int | None = None
    """When the reasoning began that is still going on, if the journal says so."""

    @property
    def ended(self) -> bool:
        return self.status != "streaming"


EMPTY = Transcript()
_NO_TEXT = Text("")
_ENDS_A_THOUGHT = (ev.TextDelta, ev.ToolDelta, ev.ToolStarted, ev.ApprovalRequested, ev.StepStarted)
_CUTS_A_THOUGHT = (ev.RunEnded, ev.RunResumed, ev.MessageSeeded, ev.MemoryRecalled)
"""After these nobody knows how long it was: a crash may lie between."""


def fold(entries: Iterable[ev.Entry], onto: Transcript = EMPTY) -> Transcript:
    """The transcript after `entries`, which must follow `onto` without a gap. BrokenSequence: they do not, or are none
    that this version can read."""
    try:
        return _fold(entries, onto)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BrokenSequence(f"The journal holds what cannot be read ({type(error).__name__}: {error}).") from error


def _fold(entries: Iterable[ev.Entry], onto: Transcript) -> Transcript:
    builder = _Builder(onto)
    quoted: list[bytes] = []  # texts of neighbouring deltas: nearly all of a journal
    last = builder.last_seq
    thinking = builder.thinking_since is not None
    for item in entries:
        seq, frame = item
        if seq != last + 1:
            raise BrokenSequence(f"Event {seq} follows event {last}: the journal has a gap.")
        text = ev.quoted_text(frame)
        if text is not None:
            if thinking:
                builder.thought(item.at)
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
    """Whether the model said or did anything: what is remembered for it does not count."""
    return any(not isinstance(part, Remembered) for part in parts)


def volume(parts: Sequence[Part]) -> int:
    """Characters that came as deltas."""
    texts = sum(len(part.text) for part in parts if isinstance(part, Text | Reasoning))
    return texts + sum(len(part.output) for part in parts if isinstance(part, Tool))


class _Builder:
    """The one mutable thing here: text grows by pieces, so that a long answer costs its length and not its square."""

    def __init__(self, onto: Transcript) -> None:
        self.base = onto
        self.parts: list[Part] = list(onto.parts)
        self.pieces: dict[tuple[int, str], list[str]] = {}  # (part, field) -> text that follows what it has
        self.last_seq = onto.last_seq
        self.status: MessageStatus = onto.status
        self.ending: ev.RunEnded | None = None
        self.usage = onto.usage
        self.approval = onto.approval
        self.thinking_since = onto.thinking_since

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
            self.thinking_since,
        )

    def add_quoted(self, pieces: list[bytes]) -> None:
        """Take texts as their frames have them; the list is empty afterwards."""
        if pieces:
            self._check_open()
            text = ev.unquoted(pieces)
            pieces.clear()
            if text:
                self._grow(_NO_TEXT, text)

    def _check_open(self) -> None:
        if self.status != "streaming":
            raise BrokenSequence(f"Event {self.last_seq + 1} follows the terminal event.")

    def add(self, event: ev.Event, at: int | None = None) -> None:
        self._check_open()
        if self.thinking_since is not None:
            if isinstance(event, _ENDS_A_THOUGHT):
                self.thought(at)
            elif isinstance(event, _CUTS_A_THOUGHT):
                self.thinking_since = None
        match event:
            case ev.TextDelta(text):
                if text:
                    self._grow(_NO_TEXT, text)
            case ev.ReasoningDelta(text, provider):
                self._reason(text, provider, at)
            case ev.RunStarted() | ev.StepStarted() | ev.Unknown():
                pass
            case ev.RunResumed():
                self._settle_tools({"running": "unknown", "pending": "not_run"})
            case ev.MessageSeeded(_, parts):
                self.parts.extend(parts)
            case ev.ToolDelta(call_id, name, args_delta, output_delta):
                self._tool_delta(call_id, name, args_delta, output_delta)
            case ev.ToolStarted(call_id, name, args, provider):
                self._put_tool(call_id, name, args, "running", provider)
            case ev.ToolFinished(call_id, result, is_error, duration_ms):
                self._join()
                where = self._find(call_id)
                if where is not None:
                    self.parts[where] = replace(
                        self._tool(where),
                        state="done",
                        result=result,
                        is_error=is_error,
                        duration_ms=duration_ms,
                    )
            case ev.ApprovalRequested(_, call_id, name, args, _, provider):
                self._put_tool(call_id, name, args, "waiting", provider)
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
            case ev.MemoryRecalled(items, note):
                self.parts.append(Remembered(items, note))
            case ev.Usage():
                self.usage = _sum(self.usage, event)
            case ev.RunEnded(status):
                self._settle_tools({"running": "unknown", "pending": "not_run", "waiting": "not_run"})
                self.status, self.ending, self.approval = status, event, None
            case _:
                assert_never(event)

    def _grow(self, empty: Text | Reasoning, text: str) -> None:
        if not self.parts or type(self.parts[-1]) is not type(empty):
            self.parts.append(empty)
        self._append(len(self.parts) - 1, "text", text)

    def thought(self, at: int | None) -> None:
        """Something else has come: the reasoning before it took until now."""
        since, self.thinking_since = self.thinking_since, None
        self._join()
        last = self.parts[-1] if self.parts else None
        if since is not None and at is not None and at > since and isinstance(last, Reasoning):
            self.parts[-1] = replace(last, duration_ms=at - since)

    def _reason(self, text: str, provider: object, at: int | None) -> None:
        """Opaque data closes a block of reasoning: what follows is another block, with data of its own."""
        last = self.parts[-1] if self.parts else None
        if isinstance(last, Reasoning) and last.provider is not None and (text or provider is not None):
            self.thought(at)
            self.parts.append(Reasoning(""))
        if text or provider is not None:
            self._grow(Reasoning(""), text)
            if self.thinking_since is None and at is not None:
                last = self.parts[-1]
                assert isinstance(last, Reasoning)
                self.thinking_since = at - (last.duration_ms or 0)
        if provider is not None:
            self._join()
            last = self.parts[-1]
            assert isinstance(last, Reasoning)
            self.parts[-1] = replace(last, provider=provider)

    def _append(self, where: int, field: str, text: str) -> None:
        self.pieces.setdefault((where, field), []).append(text)

    def _join(self) -> None:
        for (where, field), pieces in self.pieces.items():
            part = self.parts[where]
            self.parts[where] = replace(part, **{field: getattr(part, field) + "".join(pieces)})
        self.pieces.clear()

    def _tool(self, where: int) -> Tool:
        part = self.parts[where]
        assert isinstance(part, Tool)
        return part

    def _find(self, call_id: str) -> int | None:
        """The newest tool part with this call id: a provider may use an id again in a later step."""
        for where in range(len(self.parts) - 1, -1, -1):
            part = self.parts[where]
            if isinstance(part, Tool) and part.call_id == call_id:
                return where
        return None

    def _open(self, call_id: str) -> int | None:
        where = self._find(call_id)
        return None if where is None or self._tool(where).state in ("done", "denied") else where

    def _put_tool(self, call_id: str, name: str, args: object, state: ToolState, provider: object) -> None:
        """A call is started, or a person is asked about it. One that may have run before is taken up again only by the
        same tool with the same arguments; anything else under its id is another call."""
        self._join()
        where = self._open(call_id)
        old = None if where is None else self._tool(where)
        if where is None or old is None or (old.state == "unknown" and (old.name, old.args) != (name, args)):
            self.parts.append(Tool(call_id, name, args, state, provider=provider))
            return
        again = state != "running" and (old.state == "unknown" or old.may_have_run)
        kept = old.provider if provider is None else provider
        self.parts[where] = replace(old, name=name, args=args, state=state, provider=kept, may_have_run=again)

    def _tool_delta(self, call_id: str, name: str | None, args: str | None, output: str | None) -> None:
        where = self._open(call_id)
        writes = name is not None or args is not None
        if where is not None and writes and self._tool(where).state in ("unknown", "not_run"):
            where = self._write_again(where)
        if where is None:
            where = len(self.parts)
            self.parts.append(Tool(call_id, name or "", "", "pending"))
        elif name is not None:
            self.parts[where] = replace(self._tool(where), name=name)
        if output is not None:
            self._append(where, "output", output)
        if args is not None and isinstance(self._tool(where).args, str):
            self._append(where, "args", args)

    def _write_again(self, where: int) -> int | None:
        """The model writes a call anew that an earlier life left behind. One that may have run stays as it is."""
        old = self._tool(where)
        if old.state == "unknown":
            return None
        self._join()
        self.parts[where] = Tool(old.call_id, old.name, "", "pending")
        return where

    def _settle_tools(self, ends: dict[ToolState, ToolState]) -> None:
        self._join()
        for where, part in enumerate(self.parts):
            if isinstance(part, Tool) and part.state in ends:
                state = "unknown" if part.may_have_run else ends[part.state]
                self.parts[where] = replace(part, state=state, may_have_run=False)


def _sum(a: ev.Usage | None, b: ev.Usage) -> ev.Usage:
    if a is None:
        return b
    cost = None if a.cost is None and b.cost is None else (a.cost or 0.0) + (b.cost or 0.0)
    return ev.Usage(a.input_tokens + b.input_tokens, a.output_tokens + b.output_tokens, cost)
