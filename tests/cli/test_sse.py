"""Event streams from bytes that come in any pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.faces.cli import sse
from holdfast.faces.cli.sse import Frame, Parser, TooLong

STREAM = (
    b"retry: 1000\n\n: still here\n\nid: 1\nevent: run.started\ndata: {}\n\n"
    b'id: 2\r\nevent: text.delta\r\ndata: {"text":"\xc3\xa9"}\r\n\r\ndata: a\ndata: b\n\nid: 3\nevent: x\n\n'
)
FRAMES = [Frame("1", "run.started", "{}"), Frame("2", "text.delta", '{"text":"é"}'), Frame("2", "message", "a\nb")]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_pieces_make_no_difference(cuts: list[int]) -> None:
    """However the bytes are cut, also inside a character, the frames are the same; comments and empty ones are none."""
    parser, at = Parser(), [0, *sorted(cuts), len(STREAM)]
    found = [frame for start, end in pairwise(at) for frame in parser.feed(STREAM[start:end])]
    assert found == FRAMES


def test_half_a_frame_is_none() -> None:
    """What is cut off by a broken line is not given out."""
    assert Parser().feed(b"id: 1\nevent: text.delta\ndata: {}\n") == []


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that never ends is not gathered for ever, nor are lines without an end."""
    monkeypatch.setattr(sse, "MAX_EVENT", 1000)
    for piece in (b"x" * 100, b"data: " + b"x" * 100 + b"\n"):
        with pytest.raises(TooLong):
            _feed(Parser(), piece, times=20)


def _feed(parser: Parser, piece: bytes, times: int) -> None:
    for _ in range(times):
        parser.feed(piece)
