"""A run's output on its way to the journal: neighbouring deltas become one event, and nothing is shown before it is
kept.

A recorder has no task. It gathers; the writer takes what there is, commits it and tells the recorder; so one append
of a run is in flight at a time, and the busier the disk, the longer the events.
"""

from collections.abc import Callable
from itertools import takewhile

from holdfast.core.errors import HoldfastError, NotJson, Refused, TooLarge
from holdfast.core.events import (
    ApprovalRequested,
    Entry,
    Event,
    ReasoningDelta,
    RunEnded,
    TextDelta,
    ToolDelta,
    ToolStarted,
    entry,
    merge,
    named,
    text_entry,
)
from holdfast.core.ids import RunId
from holdfast.engine.bell import Bell
from holdfast.ports import Append

_SLICE = 128 * 1024
"""Longest text of one event, in characters."""
_OTHER = 256
"""What an event that is no delta counts for; its own size is the journal's to refuse."""
_DELTAS = (TextDelta, ReasoningDelta, ToolDelta)
_TIMED = 250
"""Within this many milliseconds neighbouring deltas of a kind are told no time: a time line needs no finer grain."""


class OutputLimit(HoldfastError):
    code = "output-limit"


class Recorder:
    __slots__ = (
        "_bell",
        "_durable",
        "_events",
        "_failure",
        "_kept",
        "_mark",
        "_most",
        "_pieces",
        "_room",
        "_size",
        "_taken",
        "_timed",
        "_timed_at",
        "committed",
        "epoch",
        "marked",
        "on_refused",
        "run",
        "spoke",
        "writes",
    )

    def __init__(
        self,
        run: RunId,
        epoch: int,
        last_seq: int,
        mark: Callable[["Recorder"], None],
        room: int,
        max_output: int,
    ) -> None:
        self.run = run
        self.epoch = epoch
        self.committed = last_seq
        """Seq of the last durable event."""
        self.writes = 0
        """Counts what came in; the idle limit looks whether it moved."""
        self.spoke = False
        """Something that counts as an answer came in: text, reasoning or a tool call."""
        self.marked = False
        """The writer has this recorder on its list."""
        self._mark = mark
        self._room = room
        self._most = max_output
        self._events: list[Event] = []
        self._pieces: list[str] = []  # text deltas that follow self._events
        # Sizes, counted from the beginning: of what came in, of what the writer took, of what is durable.
        self._size = self._taken = self._durable = 0
        self._timed: type[Event] | None = None  # kind of the newest event with a time
        self._timed_at = 0
        self._failure: Exception | None = None
        self._kept: list[Entry] = []  # what came before an event that was too large
        self.on_refused: Callable[[Exception], None] | None = None
        """Told at once when nothing more can be recorded: the agent may be waiting for something else."""
        self._bell = Bell()

    # ---- the agent's side ----

    def add(self, event: Event) -> bool:
        """Take an event in; whether this is full now, so that the agent should wait until it is `drained`. Raises what
        stopped this run from being recorded."""
        if self._failure is not None:
            raise self._failure
        self.writes += 1
        if type(event) is TextDelta:
            text = event.text
            size = len(text)
            if size:
                self._pieces.append(text)
                self.spoke = True
        else:
            size = self._add_other(event)
        if not size:
            return False
        size = self._size = self._size + size
        if size > self._most and type(event) is not RunEnded:
            raise OutputLimit
        if not self.marked:
            self._mark(self)
        return size - self._durable > self._room

    def _add_other(self, event: Event) -> int:
        self._close_text()
        match event:
            case ReasoningDelta(text, provider):
                size = len(text) + (0 if provider is None else _OTHER)
            case ToolDelta(_, name, args, output):
                size = len(name or "") + len(args or "") + len(output or "")
            case _:
                self.spoke = self.spoke or isinstance(event, ToolStarted | ApprovalRequested)
                self._events.append(event)
                return _OTHER
        if not size:
            return 0
        self.spoke = True
        merged = merge(self._events[-1], event) if self._events and size < _SLICE // 16 else None
        if merged is None:
            self._events.append(event)
        else:
            self._events[-1] = merged
        return size

    async def drained(self) -> None:
        """Wait until there is room again: back-pressure."""
        while self._size - self._durable > self._room:
            await self._next_change()

    async def flushed(self) -> None:
        """Wait until everything added so far is durable."""
        while self._size > self._durable:
            await self._next_change()
        if self._failure is not None:
            raise self._failure

    async def _next_change(self) -> None:
        if self._failure is not None:
            raise self._failure
        await self._bell.wait()

    # ---- the writer's side ----

    def take(self, now: int) -> Append | None:
        """All that was gathered, numbered and encoded; None if there is nothing (left). `now`: in milliseconds."""
        self.marked = False
        if self._failure is not None:
            return None
        pieces = self._pieces
        if len(pieces) == 1 and not self._events and not self._kept and len(pieces[0]) <= _SLICE:  # a lone token
            self._taken = self._size
            at = None if self._timed is TextDelta and 0 <= now - self._timed_at < _TIMED else self._time(TextDelta, now)
            token = text_entry(self.committed + 1, pieces.pop(), at)
            return named(Append, (self.run, self.epoch, (token,), False))
        self._close_text()
        if not self._events:
            return None
        events, self._events = self._events, []
        self._taken = self._size
        entries, self._kept = self._kept, []
        seq = self.committed + len(entries)
        try:
            for event in events:
                seq += 1
                entries.append(entry(seq, event, self._time(type(event), now)))
        except (TypeError, ValueError, RecursionError) as error:
            self._kept = entries
            self.refuse(NotJson(self.run, str(error)))
            return None
        return Append(self.run, self.epoch, entries, seals=type(events[-1]) is RunEnded)

    def _time(self, kind: type[Event], now: int) -> int | None:
        if kind is self._timed and 0 <= now - self._timed_at < _TIMED and kind in _DELTAS:
            return None
        self._timed, self._timed_at = kind, now
        return now

    def done(self, append: Append) -> None:
        self.committed = append.entries[-1].seq
        self._durable = self._taken
        if self._bell.awaited:
            self._bell.ring()

    def refuse(self, why: Exception, append: Append | None = None) -> None:
        """The journal refused the append, or storage gave way: nothing more of this run is recorded. What stood
        before an event that is too large is kept for the seal to take along."""
        self._failure = why
        if isinstance(why, TooLarge) and append is not None:
            fits = (len(item.frame) <= why.limit for item in append.entries)
            self._kept = [item for item, _ in zip(append.entries, takewhile(bool, fits), strict=False)]
        self._events.clear()
        self._pieces.clear()
        self._durable = self._size
        self._bell.ring()
        if self.on_refused is not None:
            self.on_refused(why)

    def forgive(self) -> None:
        """After a refusal that concerned one event only (its size): the run may still be sealed."""
        if isinstance(self._failure, Refused):
            self._failure = None

    def _close_text(self) -> None:
        if not self._pieces:
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        if len(text) <= _SLICE:
            self._events.append(TextDelta(text))
        else:
            self._events += [TextDelta(text[at : at + _SLICE]) for at in range(0, len(text), _SLICE)]
