"""Server-sent events parsed from bytes that are split anywhere."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.sse_parser import EventTooLongError, ServerSentEvent, SseParser

STREAM = (
    b"\xef\xbb\xbfretry: 1000\n\n: still here\n\nid: 1\nevent: run.started\ndata: {}\n\n"
    b'id: 2\r\nevent: text.delta\r\ndata: {"text":"\xc3\xa9"}\r\n\r\ndata: a\ndata:b\r\rdata: c\n\ndata\n\n'
    b"id: 3\nevent: x\n\ndata: d\n\n"
)
EVENTS = [
    ServerSentEvent(b"{}", "run.started", "1"),
    ServerSentEvent('{"text":"é"}'.encode(), "text.delta", "2"),
    ServerSentEvent(b"a\nb", "message", "2"),
    ServerSentEvent(b"c", "message", "2"),
    ServerSentEvent(b"", "message", "2"),
    ServerSentEvent(b"d", "message", "3"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_the_split_makes_no_difference(cuts: list[int]) -> None:
    """However the bytes are cut, also inside a character or a CRLF, the events are the same."""
    parser, at = SseParser(1000), [0, *sorted(cuts), len(STREAM)]
    assert [event for start, end in pairwise(at) for event in parser.feed(STREAM[start:end])] == EVENTS


def test_half_an_event_is_given_out_only_by_finish() -> None:
    """A broken connection drops it; the end of a stream may complete it."""
    parser = SseParser(1000)
    assert list(parser.feed(b"id: 1\nevent: text.delta\ndata: {}")) == []
    assert list(parser.finish()) == [ServerSentEvent(b"{}", "text.delta", "1")]


@pytest.mark.parametrize("piece", [b"x" * 100, b"data: " + b"x" * 100 + b"\n"])
def test_an_endless_event_is_refused(piece: bytes) -> None:
    """Neither a line that never ends nor lines without a blank one are buffered beyond the limit."""
    parser = SseParser(1000)
    for _ in range(9):
        parser.feed(piece)
    with pytest.raises(EventTooLongError, match="1,000 bytes"):
        parser.feed(piece * 2)


def test_events_before_one_that_is_too_long_are_kept() -> None:
    """What was complete in the same bytes is not lost."""
    with pytest.raises(EventTooLongError) as caught:
        SseParser(10).feed(b"data: a\n\ndata: " + b"x" * 20 + b"\n\n")
    assert caught.value.events == [ServerSentEvent(b"a")]
