"""Parser for server-sent events. Linear in the bytes fed, however they are split, and bounded by a limit per event.
Lines end with LF, CRLF or CR. Comments, unknown fields and events without data are skipped. What our own frames look
like: `core.events`."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

MAX_EVENT = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """A complete event. Several `data` lines are joined with LF."""

    data: bytes
    event: str = "message"
    id: str = ""  # The last id seen in the stream, as the format defines it


class EventTooLongError(ValueError):
    """One event exceeds the limit. `events` holds the complete events that precede it in the same bytes."""

    def __init__(self, limit: int, events: Sequence[ServerSentEvent]) -> None:
        super().__init__(f"a server-sent event is longer than {limit:,} bytes")
        self.events = events


class SseParser:
    """`feed` returns the events that the bytes complete; `finish` the one that the stream's end completes."""

    def __init__(self, limit: int = MAX_EVENT, data_fields: Collection[bytes] = (b"data",)) -> None:
        """`data_fields`: names of the fields that are read as data."""
        self._limit = limit
        self._data_fields = data_fields
        self._tail: list[bytes] = []  # an unfinished line, in pieces that are joined once its end arrives
        self._tail_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._event = "message"
        self._id = ""
        self._after_cr = False
        self._started = False
        self.at_boundary = False  # True if the next byte starts a new event

    def feed(self, data: bytes) -> Sequence[ServerSentEvent]:
        if self.at_boundary and self._is_single_event(data):
            return (ServerSentEvent(data[6:-2], "message", self._id),)
        self.at_boundary = False
        events = self._feed(data)
        pending = self._tail or self._data or self._after_cr or self._event != "message"
        self.at_boundary = self._started and not pending
        return events

    def finish(self) -> Sequence[ServerSentEvent]:
        """Accepts an event without its last blank line, which is more common than half an event."""
        return self._read_lines([self._complete(b""), b""])

    def _is_single_event(self, data: bytes) -> bool:
        """Fast path: most tokens arrive as one whole event."""
        if not data.startswith(b"data: ") or not data.endswith(b"\n\n") or b"\r" in data:
            return False
        return data.find(b"\n") == len(data) - 2 <= self._limit

    def _feed(self, data: bytes) -> Sequence[ServerSentEvent]:
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif data:
            self._after_cr = False
        cut = data.rfind(b"\n")
        if cut < 0:
            self._keep_tail(data, ())
            return ()
        complete = self._complete(data[:cut]) if self._tail else data[:cut]
        events = self._read_lines(complete.split(b"\n"))
        self._keep_tail(data[cut + 1 :], events)
        return events

    def _complete(self, rest: bytes) -> bytes:
        """The unfinished line with its rest."""
        whole = b"".join([*self._tail, rest])
        self._tail, self._tail_size = [], 0
        return whole

    def _keep_tail(self, piece: bytes, events: Sequence[ServerSentEvent]) -> None:
        if piece:
            self._tail.append(piece)
            self._tail_size += len(piece)
            if self._tail_size + self._data_size > self._limit:
                raise EventTooLongError(self._limit, events)

    def _read_lines(self, lines: list[bytes]) -> Sequence[ServerSentEvent]:
        if not self._started:
            lines[0] = lines[0].removeprefix(_BOM)
            self._started = True
        events: list[ServerSentEvent] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(ServerSentEvent(b"\n".join(self._data), self._event, self._id))
                    self._data = []
                    self._data_size = 0
                self._event = "message"
                continue
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name in self._data_fields:
                self._data_size += len(line)
                if self._data_size > self._limit:
                    raise EventTooLongError(self._limit, events)
                self._data.append(value)
            elif name == b"event":
                self._event = value.decode("utf-8", "replace") or "message"
            elif name == b"id":
                self._id = value.decode("utf-8", "replace")
        return events
