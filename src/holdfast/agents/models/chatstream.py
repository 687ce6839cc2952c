"""The body of a chat completion, from bytes that are cut anywhere to deltas. No I/O: `feed` and `finish` decide
everything, so that any cutting of the same bytes gives the same answer."""

from collections.abc import Collection, Sequence

from holdfast.agents.models.chunks import Assembler
from holdfast.agents.models.failures import Trouble, from_error
from holdfast.agents.models.jsons import loads
from holdfast.agents.models.port import Delta, ToolCall
from holdfast.agents.models.shape import Shape, learn
from holdfast.agents.models.sse import EventParser, TooLong
from holdfast.core.parts import Json

MAX_EVENT = 4 * 1024 * 1024
MAX_ANSWER = 64 * 1024 * 1024
_LESSONS = 4
"""How many shapes are learnt in vain before it is taken that every chunk is different."""


class ChatStream:
    """`done`: the answer is complete. `trouble`: it cannot be; what came before it has been given out. In either case
    nothing more is read."""

    def __init__(
        self, taken: Collection[str] = (), *, max_event: int = MAX_EVENT, max_answer: int = MAX_ANSWER
    ) -> None:
        self.done = False
        self.trouble: Trouble | None = None
        self._events = EventParser(max_event)
        self._chunks = Assembler(taken)
        self._max_event = max_event
        self._max_answer = max_answer
        self._size = 0
        self._any_event = False
        self._last: tuple[bytes, Json] | None = None  # the newest event, and what was in it
        self._shape: Shape | None = None
        self._lessons = _LESSONS

    @property
    def calls(self) -> Sequence[ToolCall]:
        return self._chunks.calls

    @property
    def finish_reason(self) -> str | None:
        return self._chunks.finish_reason

    def feed(self, data: bytes) -> Sequence[Delta]:
        said = self.say(data)
        if said is not None:
            return said
        if self._over():
            return ()
        room = self._max_answer - self._size
        self._size += len(data)
        if len(data) <= room:
            return self._fed(data)
        deltas = self._fed(data[:room])
        if not self._over():
            self.trouble = Trouble("protocol", f"the answer did not end within {self._max_answer:,} bytes")
        return deltas

    def say(self, data: bytes) -> Sequence[Delta] | None:
        """What `feed` gives for the usual data: whole events that have text in them and nothing else, so that nothing
        has to be looked at afterwards. None for all other, which is not taken."""
        shape, size = self._shape, len(data)
        if shape is None or self.done or self.trouble is not None or not self._events.between:
            return None
        if size > self._max_event or size > self._max_answer - self._size:
            return None
        text = shape.text(data)
        if text is None:
            return None
        self._size += size
        self._lessons = _LESSONS
        return self._chunks.said(text)

    def _fed(self, data: bytes) -> Sequence[Delta]:
        try:
            events = self._events.feed(data)
        except TooLong as error:
            return self._too_long(error.events)
        deltas = self._read(events)
        if self._lessons and self._last is not None:
            self._learn(*self._last)
        return deltas

    def _learn(self, line: bytes, chunk: Json) -> None:
        self._last = None
        shape = learn(line, chunk)
        if shape is not None and shape != self._shape:
            self._shape = shape
            self._lessons -= 1

    def finish(self) -> Sequence[Delta]:
        """The stream has ended. Without a finish reason or the end mark it broke off."""
        if self._over():
            return ()
        try:
            deltas = list(self._read(self._events.finish()))
        except TooLong as error:
            return self._too_long(error.events)
        if self._over():
            return deltas
        if self.finish_reason is None:
            self.trouble = self._broken_off()
            return deltas
        self._complete()
        return [*deltas, *self._chunks.take()]

    def whole(self, body: bytes) -> Sequence[Delta]:
        """An answer that came as one JSON value instead of a stream."""
        try:
            value = loads(body)
        except ValueError as error:
            self.trouble = Trouble("protocol", f"the answer is no valid JSON: {error}", retry=True)
            return ()
        self._chunk(value)
        if self.trouble is None:
            if not (isinstance(value, dict) and value.get("choices")):
                self.trouble = Trouble("protocol", "the answer has no choices")
            else:
                self._complete()
        return self._chunks.take()

    # ---- events ----

    def _over(self) -> bool:
        return self.done or self.trouble is not None

    def _read(self, events: Sequence[list[bytes]]) -> Sequence[Delta]:
        for event in events:
            self._event(event)
            if self._over():
                break
        return self._chunks.take()

    def _too_long(self, events: Sequence[list[bytes]]) -> Sequence[Delta]:
        deltas = self._read(events)
        if not self._over():
            self.trouble = Trouble("protocol", f"one event is larger than {self._max_event:,} bytes")
        return deltas

    def _event(self, lines: list[bytes]) -> None:
        data = lines[0] if len(lines) == 1 else b"\n".join(lines)
        if data == b"[DONE]" or data.strip() == b"[DONE]":
            self._complete()
            return
        try:
            chunk = loads(data)
        except ValueError as error:
            self._not_json(lines, error)
            return
        self._last = (data, chunk)
        self._chunk(chunk)

    def _chunk(self, chunk: Json) -> None:
        self._any_event = True
        self._chunks.add(chunk)
        self.trouble = self._chunks.trouble

    def _not_json(self, lines: list[bytes], error: ValueError) -> None:
        """Some servers leave out the blank lines between events."""
        if not b"".join(lines).strip():
            return
        if len(lines) == 1:
            found = lines[0][:80].decode("utf-8", "replace")
            self.trouble = Trouble("protocol", f"a chunk is no valid JSON: {error}: {found!r}", retry=True)
            return
        for line in lines:
            self._event([line])
            if self._over():
                return

    def _complete(self) -> None:
        if self._chunks.end():
            self.done = True
        elif self.finish_reason is None:
            self.trouble = Trouble("protocol", "the answer ended without any content", retry=True)
        else:
            self.trouble = Trouble("refused", "its content filter stopped the answer")

    def _broken_off(self) -> Trouble:
        if not self._any_event:
            return Trouble("protocol", "the answer has nothing in it that this format knows", retry=True)
        return Trouble("unavailable", "the connection ended in the middle of the answer", retry=True)


def failed_body(status: int, body: bytes, after: float | None) -> Trouble:
    """Of an answer whose status says that it failed."""
    try:
        value = loads(body)
    except ValueError:
        value = None
    if isinstance(value, list) and value:  # Google's form
        value = value[0]
    error = value.get("error", value) if isinstance(value, dict) else None
    if error is None:
        text = body[:300].decode("utf-8", "replace").strip()
        error = text if text and not text.startswith("<") else f"status {status}"
    return from_error(error, status, after)
