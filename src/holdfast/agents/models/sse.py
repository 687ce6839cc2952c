"""Server-sent events from bytes that are cut anywhere. No I/O, and linear in the bytes whatever the cuts are.

Line ends are LF, CRLF or CR. Comments and unknown fields are skipped, as the format says; an event that the stream
ends in the middle of is given out by `finish`, because a missing last blank line is commoner than half an event.
"""

from collections.abc import Sequence

_BOM = b"\xef\xbb\xbf"


class TooLong(Exception):
    """One event is larger than the limit. `events` came before it, in the same bytes."""

    def __init__(self, events: Sequence[list[bytes]]) -> None:
        super().__init__()
        self.events = events


class EventParser:
    """`feed` gives the data of the events that are now complete: for each its `data` lines, nearly always one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tail: list[bytes] = []  # an unfinished line, in pieces: joined once, when its end is there
        self._tail_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._after_cr = False
        self._begun = False
        self.between = False
        """Nothing is open: what comes next begins an event."""

    def feed(self, data: bytes) -> Sequence[list[bytes]]:
        if self.between and self._is_one_event(data):
            return ([data[6:-2]],)
        self.between = False
        events = self._feed(data)
        self.between = self._begun and not (self._tail or self._data or self._after_cr)
        return events

    def _is_one_event(self, data: bytes) -> bool:
        """As most tokens arrive: alone and whole."""
        if not data.startswith(b"data: ") or not data.endswith(b"\n\n") or b"\r" in data:
            return False
        return data.find(b"\n") == len(data) - 2 <= self._limit

    def _feed(self, data: bytes) -> Sequence[list[bytes]]:
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
            self._keep(data, ())
            return ()
        whole = data[:cut]
        if self._tail:
            self._tail.append(whole)
            whole = b"".join(self._tail)
            self._tail.clear()
            self._tail_size = 0
        events = self._lines(whole.split(b"\n"))
        self._keep(data[cut + 1 :], events)
        return events

    def finish(self) -> Sequence[list[bytes]]:
        """What the end of the stream completes."""
        last = b"".join(self._tail)
        self._tail.clear()
        self._tail_size = 0
        return self._lines([last, b""])

    def _keep(self, piece: bytes, events: Sequence[list[bytes]]) -> None:
        if piece:
            self._tail.append(piece)
            self._tail_size += len(piece)
            if self._tail_size + self._data_size > self._limit:
                raise TooLong(events)

    def _lines(self, lines: list[bytes]) -> Sequence[list[bytes]]:
        if not self._begun:
            lines[0] = lines[0].removeprefix(_BOM)
            self._begun = True
        events: list[list[bytes]] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(self._data)
                    self._data = []
                    self._data_size = 0
                continue
            # llama.cpp has reported failures in a field of its own.
            if line.startswith((b"data:", b"error:")):
                value = line[line.index(b":") + 1 :]
                self._data_size += len(value)
                if self._data_size > self._limit:
                    raise TooLong(events)
                self._data.append(value[1:] if value[:1] == b" " else value)
        return events
