"""Parser for a streamed chat completion: bytes in, deltas out. No I/O: however the bytes are split, the same bytes give
the same answer. How large an answer may be is decided here; whether a broken one is asked for again:
`models.request_policy`."""

from collections.abc import Collection, Sequence

from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, merge
from holdfast.core.json_limits import LARGE, has_too_many_values
from holdfast.core.lenient_json import loads
from holdfast.core.parts import Json
from holdfast.core.sse_parser import EventTooLongError, ServerSentEvent, SseParser
from holdfast.models.chunk_assembler import ChunkAssembler
from holdfast.models.chunk_template import ChunkTemplate, learn
from holdfast.models.upstream_errors import UpstreamError, from_error
from holdfast.ports.model import Delta, ToolCall

MAX_EVENT = 4 * 1024 * 1024
MAX_ANSWER = 64 * 1024 * 1024
MAX_ERROR_BODY = 64 * 1024
_MAX_STRUCTURE = 512 * 1024
"""Bytes outside of strings of an answer, or of a part of it that comes as one event: thousands of calls have no more,
and so many values take some 30 ms."""
_MAX_STRINGS = 100_000  # Of the same
_MAX_LINES = 20_000  # Of one event whose lines are chunks
_BLANK_LINE = b"\n\n"
_PARSED_FIRST = 4  # The rest of an event, one that names the role, the first text, one to learn from
_PARSED_LAST = 3  # The finish reason, the usage, the end mark
_TEMPLATE_ATTEMPTS = 4  # Templates learned in vain before every chunk is assumed to differ
_TOO_MANY_VALUES = UpstreamError("protocol", "the answer has too many values besides its text")


class ChatCompletionStream:
    """`done`: the answer is complete. `error`: it cannot be completed; the deltas before it were given out. After
    either, further bytes are ignored."""

    def __init__(
        self, used_ids: Collection[str] = (), *, max_event: int = MAX_EVENT, max_answer: int = MAX_ANSWER
    ) -> None:
        self.done = False
        self.error: UpstreamError | None = None
        self._events = SseParser(max_event, (b"data", b"error"))  # llama.cpp reports failures in an `error` field
        self._chunks = ChunkAssembler(used_ids)
        self._max_event = max_event
        self._max_answer = max_answer
        self._size = 0
        self._any_event = False
        self._last_event: tuple[bytes, Json] | None = None  # its data and the parsed chunk
        self._template: ChunkTemplate | None = None
        self._template_attempts = _TEMPLATE_ATTEMPTS

    @property
    def calls(self) -> Sequence[ToolCall]:
        return self._chunks.calls

    @property
    def finish_reason(self) -> str | None:
        return self._chunks.finish_reason

    def feed(self, data: bytes) -> Sequence[Delta]:
        if self._over():
            return ()
        room = self._max_answer - self._size
        self._size += len(data)
        if len(data) <= room:
            return self._feed(data)
        deltas = self._feed(data[:room])
        if not self._over():
            self.error = UpstreamError("protocol", f"the answer did not end within {self._max_answer:,} bytes")
        return deltas

    def feed_text(self, data: bytes) -> Sequence[Delta] | None:
        """Fast path of `feed` for whole events that contain only text, after which neither `done` nor `error` can have
        changed. Returns None, and consumes nothing, for any other data."""
        template, size = self._template, len(data)
        if template is None or self.done or self.error is not None or not self._events.at_boundary:
            return None
        if size > self._max_event or size > self._max_answer - self._size:
            return None
        text = template.text(data)
        if text is None:
            return None
        self._size += size
        return self._add_text(text)

    def _add_text(self, text: str) -> Sequence[Delta]:
        self._template_attempts = _TEMPLATE_ATTEMPTS
        return self._chunks.add_text(text) if text else ()

    def _feed(self, data: bytes) -> Sequence[Delta]:
        """A read may contain hundreds of events and begin and end in the middle of one. Parsed in full are only the
        first, to come to the start of an event and to learn the template, and the last, which may end the answer."""
        if len(data) > self._max_event:
            return self._parse(data)
        deltas: list[Delta] = []
        for _ in range(_PARSED_FIRST):
            start = data.find(_BLANK_LINE) + len(_BLANK_LINE)
            if self._has_template() or start < len(_BLANK_LINE) or self._over():
                break
            _join(deltas, self._parse(data[:start]))
            data = data[start:]
        end = len(data) if self._has_template() and not self._over() else 0
        for _ in range(_PARSED_LAST + 1):
            end = data.rfind(_BLANK_LINE, 0, end)
            if end < 0 or self._template is None:
                break
            text = self._template.text(data[: end + len(_BLANK_LINE)])
            if text is not None:
                _join(deltas, self._add_text(text))
                data = data[end + len(_BLANK_LINE) :]
                break
        if data and not self._over():
            _join(deltas, self._parse(data))
        return deltas

    def _has_template(self) -> bool:
        return self._template is not None and self._events.at_boundary

    def _parse(self, data: bytes) -> Sequence[Delta]:
        try:
            events = self._events.feed(data)
        except EventTooLongError as error:
            return self._too_long(error.events)
        has_text = self._chunks.produced
        deltas = self._read(events)
        if has_text and self._template_attempts and self._last_event is not None:  # not for an answer of one chunk
            template, self._last_event = learn(*self._last_event), None
            if template is not None and template != self._template:
                self._template = template
                self._template_attempts -= 1
        return deltas

    def finish(self) -> Sequence[Delta]:
        """The stream has ended. Without a finish reason or the end mark, it broke off."""
        if self._over():
            return ()
        try:
            deltas = list(self._read(self._events.finish()))
        except EventTooLongError as error:
            return self._too_long(error.events)
        if self._over():
            return deltas
        if self.finish_reason is None:
            self.error = (
                UpstreamError("unavailable", "the connection ended in the middle of the answer", retry=True)
                if self._any_event
                else UpstreamError("protocol", "the answer contains no chat completion", retry=True)
            )
            return deltas
        self._complete()
        return [*deltas, *self._chunks.take()]

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        """Reads an answer that came as one JSON value instead of a stream."""
        if has_too_many_values(body, _MAX_STRUCTURE, _MAX_STRINGS):
            self.error = _TOO_MANY_VALUES
            return ()
        try:
            value = loads(body)
        except ValueError as error:
            self.error = UpstreamError("protocol", f"the answer is not valid JSON: {error}", retry=True)
            return ()
        self._chunk(value)
        if self.error is None:
            if not (isinstance(value, dict) and value.get("choices")):
                self.error = UpstreamError("protocol", "the answer has no choices")
            else:
                self._complete()
        return self._chunks.take()

    # ---- events ----

    def _over(self) -> bool:
        return self.done or self.error is not None

    def _read(self, events: Sequence[ServerSentEvent]) -> Sequence[Delta]:
        for event in events:
            self._event(event.data)
            if self._over():
                break
        return self._chunks.take()

    def _too_long(self, events: Sequence[ServerSentEvent]) -> Sequence[Delta]:
        deltas = self._read(events)
        if not self._over():
            self.error = UpstreamError("protocol", f"one event is larger than {self._max_event:,} bytes")
        return deltas

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]" or data.strip() == b"[DONE]":
            self._complete()
            return
        if len(data) > LARGE and has_too_many_values(data, _MAX_STRUCTURE, _MAX_STRINGS):
            self._read_lines(data, _TOO_MANY_VALUES)
            return
        try:
            chunk = loads(data)
        except ValueError as error:
            found = data[:80].decode("utf-8", "replace")
            why = f"a chunk is not valid JSON: {error}: {found!r}"
            self._read_lines(data, UpstreamError("protocol", why, retry=True))
            return
        self._last_event = (data, chunk)
        self._chunk(chunk)

    def _chunk(self, chunk: Json) -> None:
        self._any_event = True
        self._chunks.add(chunk)
        self.error = self._chunks.error

    def _read_lines(self, data: bytes, error: UpstreamError) -> None:
        """Reads each line as an event: some servers leave out the blank lines between them. `error`: why one line alone
        cannot be read."""
        if not data.strip():
            return
        lines = data.split(b"\n")
        if len(lines) == 1:
            self.error = error
            return
        if len(lines) > _MAX_LINES:
            self.error = UpstreamError("protocol", f"one event has more than {_MAX_LINES:,} lines")
            return
        for line in lines:
            self._event(line)
            if self._over():
                return

    def _complete(self) -> None:
        if self._chunks.end():
            self.done = True
        elif self.finish_reason is None:
            self.error = UpstreamError("protocol", "the answer ended without any content", retry=True)
        else:
            self.error = UpstreamError("refused", "its content filter stopped the answer")


def _join(deltas: list[Delta], more: Sequence[Delta]) -> None:
    """Append deltas, merging neighbors of one kind; what a provider signed stays apart."""
    for delta in more:
        merged = merge(deltas[-1], delta) if deltas and getattr(delta, "provider", None) is None else None
        if isinstance(merged, TextDelta | ReasoningDelta | ToolDelta):
            deltas[-1] = merged
        else:
            deltas.append(delta)


def failed_body(status: int, body: bytes, after: float | None) -> UpstreamError:
    """The error that a response with a failure status describes, in the beginning of its body."""
    body = body[:MAX_ERROR_BODY]
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
