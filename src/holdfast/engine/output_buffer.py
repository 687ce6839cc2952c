"""Buffers a run's output on its way to the journal, merging neighboring deltas into one event (how:
`core.events.merge`). Beyond `max_uncommitted` the agent waits, beyond `max_output` the run fails (`engine.settings`).

It has no task of its own: the group-commit writer takes the gathered events, commits them and reports the result. A run
has one append in flight at a time, so a slower disk makes longer events.
"""

from collections.abc import Callable
from itertools import takewhile

from holdfast.core import events as ev
from holdfast.core.errors import AppendRefusedError, HoldfastError, NotJsonError, TooLargeError
from holdfast.core.ids import RunId
from holdfast.engine.signals import Notifier
from holdfast.ports.journal import Append

_LONGEST = 128 * 1024  # Longest text of one event, in characters
_EVENT_SIZE = 256  # What an event that is not a delta counts towards the limits; the journal checks its real size
_DELTAS = (ev.TextDelta, ev.ReasoningDelta, ev.ToolDelta)
_TIME_GRAIN = 250  # Milliseconds within which neighboring deltas of a kind share one timestamp


class OutputLimitError(HoldfastError):
    code = "output-limit"


class OutputBuffer:
    def __init__(
        self, run: RunId, epoch: int, last_seq: int, mark: Callable[["OutputBuffer"], None], room: int, max_output: int
    ) -> None:
        self.run = run
        self.epoch = epoch
        self.committed = last_seq  # Seq of the last durable event
        self.writes = 0  # Number of events added; the idle limit checks whether it changes
        self.has_output = False  # Whether there was text, reasoning, a tool call or a plan
        self.ending: ev.RunEnded | None = None  # The terminal event, once it was added and as long as it is not refused
        self.marked = False  # Whether the writer has this buffer on its list
        self._mark = mark
        self._room = room
        self._max_output = max_output
        self._events: list[ev.Event] = []
        self._pieces: list[str] = []  # text deltas that follow self._events
        self._call_deltas: dict[str, int] = {}  # positions of the tool deltas at the end of self._events, by call
        # Running totals: what was added, what the writer took, what is durable.
        self._size = self._taken = self._durable = 0
        self._timed: type[ev.Event] | None = None  # kind of the newest event with a timestamp
        self._timed_at = 0
        self._failure: Exception | None = None
        self._accepted: list[ev.Entry] = []  # entries before one that was refused
        self.on_refused: Callable[[Exception], None] | None = None
        """Called at once when nothing more can be recorded: the agent may be waiting for something else."""
        self.on_output: Callable[[], None] | None = None  # Called once, when the first output is durable
        self._changed = Notifier()

    # ---- the agent's side ----

    def add(self, event: ev.Event) -> bool:
        """Add an event; whether the buffer is now full. Raises the error that stopped the recording, if any."""
        if self._failure is not None:
            raise self._failure
        self.writes += 1
        if type(event) is ev.TextDelta:
            text = event.text
            size = len(text)
            if size:
                self._pieces.append(text)
                self.has_output = True
        else:
            size = self._add_other(event)
        if not size:
            return False
        size = self._size = self._size + size
        if size > self._max_output and type(event) is not ev.RunEnded:
            raise OutputLimitError
        if not self.marked:
            self._mark(self)
        return size - self._durable > self._room

    def _add_other(self, event: ev.Event) -> int:
        self._close_text()
        at = len(self._events) - 1
        match event:
            case ev.ReasoningDelta(text, provider):
                self._call_deltas.clear()
                size = len(text) + (0 if provider is None else _EVENT_SIZE)
            case ev.ToolDelta(call_id, name, args, output):
                size = len(name or "") + len(args or "") + len(output or "")
                at = self._call_deltas.get(call_id, -1)  # deltas of parallel calls alternate
            case _:
                self._call_deltas.clear()
                if isinstance(event, ev.RunEnded):
                    self.ending = event
                self.has_output = self.has_output or isinstance(
                    event, ev.ToolStarted | ev.ApprovalRequested | ev.PlanUpdated
                )
                self._events.append(event)
                return _EVENT_SIZE
        if not size:
            return 0
        self.has_output = True
        merged = ev.merge(self._events[at], event) if at >= 0 and size < _LONGEST // 16 else None
        if merged is not None:
            self._events[at] = merged
            return size
        self._events += _split(event)
        if isinstance(event, ev.ToolDelta):
            self._call_deltas[event.call_id] = len(self._events) - 1
        return size

    async def wait_for_room(self) -> None:
        """Wait until there is room again (back-pressure)."""
        while self._size - self._durable > self._room:
            await self._next_change()

    async def wait_until_durable(self) -> None:
        """Wait until everything added so far is durable."""
        while self._size > self._durable:
            await self._next_change()
        if self._failure is not None:
            raise self._failure

    async def _next_change(self) -> None:
        if self._failure is not None:
            raise self._failure
        await self._changed.wait()

    # ---- the writer's side ----

    def take(self, now: int) -> Append | None:
        """Everything gathered, numbered and encoded, or None. `now` is in milliseconds."""
        self.marked = False
        if self._failure is not None:
            return None
        try:
            return self._take(now)
        except Exception as error:  # noqa: BLE001 - output that cannot be encoded ends its run, not the writer
            self.refuse(NotJsonError(self.run, str(error)))
            return None

    def _take(self, now: int) -> Append | None:
        pieces = self._pieces
        is_single_token = len(pieces) == 1 and not self._events and not self._accepted
        if is_single_token and len(pieces[0]) <= _LONGEST:
            self._taken = self._size
            token = ev.text_entry(self.committed + 1, pieces.pop(), self._time(ev.TextDelta, now))
            return Append(self.run, self.epoch, (token,), seals=False)
        self._close_text()
        if not self._events:
            return None
        events, self._events = self._events, []
        self._call_deltas.clear()
        self._taken = self._size
        for seq, event in enumerate(events, self.committed + len(self._accepted) + 1):
            self._accepted.append(ev.entry(seq, event, self._time(type(event), now)))
        entries, self._accepted = self._accepted, []
        return Append(self.run, self.epoch, entries, seals=type(events[-1]) is ev.RunEnded)

    def _time(self, kind: type[ev.Event], now: int) -> int | None:
        if kind is self._timed and 0 <= now - self._timed_at < _TIME_GRAIN and kind in _DELTAS:
            return None
        self._timed, self._timed_at = kind, now
        return now

    def done(self, append: Append) -> None:
        self.committed = append.entries[-1].seq
        self._durable = self._taken
        if self.has_output and self.on_output is not None:
            called, self.on_output = self.on_output, None
            called()
        if self._changed.awaited:
            self._changed.notify()

    def refuse(self, why: Exception, append: Append | None = None) -> None:
        """Stop recording. Entries before one that was too large are kept, and committed together with the seal."""
        self._failure = why
        if isinstance(why, TooLargeError) and append is not None:
            fits = (len(item.frame) <= why.limit for item in append.entries)
            self._accepted = [item for item, _ in zip(append.entries, takewhile(bool, fits), strict=False)]
        self._events.clear()
        self._call_deltas.clear()
        self._pieces.clear()
        self.ending = None
        self._durable = self._size
        self._changed.notify()
        if self.on_refused is not None:
            self.on_refused(why)

    def allow_seal(self) -> None:
        """After the refusal of a single event, allow the run to be sealed."""
        if isinstance(self._failure, AppendRefusedError):
            self._failure = None

    def _close_text(self) -> None:
        if not self._pieces:
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        self._call_deltas.clear()
        self._events += _split(ev.TextDelta(text))


def _split(delta: ev.TextDelta | ev.ReasoningDelta | ev.ToolDelta) -> list[ev.Event]:
    """The same as deltas that each fit into an event."""
    match delta:
        case ev.TextDelta(text) if len(text) > _LONGEST:
            return [ev.TextDelta(piece) for piece in _cut(text)]
        case ev.ReasoningDelta(text, provider) if len(text) > _LONGEST:
            *before, last = _cut(text)
            return [*map(ev.ReasoningDelta, before), ev.ReasoningDelta(last, provider)]
        case ev.ToolDelta(call_id, name, str(args), None) if len(args) > _LONGEST:
            first, *rest = _cut(args)
            return [ev.ToolDelta(call_id, name, first), *(ev.ToolDelta(call_id, args_delta=piece) for piece in rest)]
        case ev.ToolDelta(call_id, None, None, str(output)) if len(output) > _LONGEST:
            return [ev.ToolDelta(call_id, output_delta=piece) for piece in _cut(output)]
        case _:
            return [delta]


def _cut(text: str) -> list[str]:
    return [text[at : at + _LONGEST] for at in range(0, len(text), _LONGEST)]
