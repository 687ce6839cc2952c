"""The parser of streamed answers: pure, so any cutting of the same bytes gives the same answer."""

import itertools
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, Usage
from holdfast.models.chat_completion_stream import ChatCompletionStream
from holdfast.models.upstream_errors import UpstreamError
from holdfast.ports.model import Delta, ToolCall
from tests.models.asking import joined
from tests.upstream import delta

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
pieces = st.builds(
    lambda index, call_id, name, args: {
        **({} if index is None else {"index": index}),
        **({} if call_id is None else {"id": call_id}),
        "function": {"name": name, "arguments": args},
    },
    st.none() | st.integers(0, 2),
    st.none() | st.sampled_from(["", "c1", "c2"]),
    st.none() | st.sampled_from(["", "look", "write"]),
    st.none() | st.sampled_from(["", "{", '"x": 1', "}", "{}", "Ł"]) | st.just({"x": 1}),
)
chunks = st.one_of(
    texts.map(lambda t: delta(content=t)),
    texts.map(lambda t: delta(reasoning_content=t)),
    st.lists(pieces, max_size=3).map(lambda calls: delta(tool_calls=calls)),
    st.just({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5}}),
    st.sampled_from(["stop", "length"]).map(lambda reason: delta(finish=reason)),
    st.just({"error": {"message": "it broke"}}),
)
written = st.one_of(
    chunks.map(lambda chunk: b"data: " + json.dumps(chunk, ensure_ascii=False).encode()),
    chunks.map(lambda chunk: b"data:" + json.dumps(chunk, indent=0).encode().replace(b"\n", b"\ndata: ")),
    st.sampled_from([b": keep-alive", b"event: message", b"id: 7", b"data: [DONE]", b"data: {", b"nonsense", b"data:"]),
)
streams = st.builds(
    lambda bom, events, end: (b"\xef\xbb\xbf" if bom else b"") + b"".join(e + end for e in events),
    st.booleans(),
    st.lists(written, max_size=12),
    st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r", b"\n"]),
)


def event(chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


cuts = st.lists(st.integers(0, 400), max_size=20)
Read = tuple[list[Any], Sequence[ToolCall], str | None, bool, UpstreamError | None]


def read(data: bytes, at: Sequence[int] = ()) -> Read:
    """Everything that comes of the bytes, cut at these places."""
    stream = ChatCompletionStream()
    deltas: list[Delta] = []
    edges = [0, *sorted(cut for cut in at if cut < len(data)), len(data)]
    for start, end in itertools.pairwise(edges):
        deltas.extend(stream.feed(data[start:end]))
    deltas.extend(stream.finish())
    return joined(deltas), stream.calls, stream.finish_reason, stream.done, stream.error


@settings(deadline=None)
@given(streams, cuts)
@example(b'data: {"choices":[{"delta":{"content":"a"}}]}\r\n\r\n', [46, 47, 48])
def test_any_cutting_gives_the_same_answer(data: bytes, at: list[int]) -> None:
    """Where the network cuts the bytes changes nothing: not even inside a character or a line end, nor if every byte
    comes alone."""
    whole = read(data)
    assert read(data, at) == whole
    assert read(data, range(len(data))) == whole


@settings(deadline=None)
@given(st.binary(max_size=300), cuts)
def test_any_bytes_end_in_an_answer_or_in_trouble(data: bytes, at: list[int]) -> None:
    """Nothing that arrives makes the parser raise, and the end is always one of the two."""
    _, _, _, done, trouble = read(data, at)
    assert done != (trouble is not None)


def test_deltas_that_arrive_together_are_gathered() -> None:
    """Neighboring text is one delta: the cost of an event is paid once."""
    stream = ChatCompletionStream()
    lines = [delta(reasoning="a"), delta(reasoning="b"), delta(content="c"), delta(content="d")]
    data = b"".join(map(event, lines))
    assert stream.feed(data) == [ReasoningDelta("ab"), TextDelta("cd")]


def test_a_call_is_written_as_it_comes() -> None:
    """The name goes with the first delta that knows it, and only with that."""
    stream = ChatCompletionStream()
    shown: list[Delta] = []
    for piece in (
        {"index": 0, "id": "c1", "function": {"name": "look", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"x":'}},
        {"index": 0, "function": {"arguments": "1}"}},
    ):
        shown.extend(stream.feed(event(delta(tool_calls=[piece]))))
    assert shown == [ToolDelta("c1", "look", ""), ToolDelta("c1", None, '{"x":'), ToolDelta("c1", None, "1}")]


def test_ids_of_the_conversation_are_not_used_again() -> None:
    """A provider that numbers its calls from one in every answer gets other ids from us."""
    stream = ChatCompletionStream({"call_1", "c1"})
    calls = [{"index": 0, "function": {"name": "a"}}, {"index": 1, "id": "c1", "function": {"name": "b"}}]
    stream.feed(event(delta(tool_calls=calls)) + b"data: [DONE]\n\n")
    assert [call.call_id for call in stream.calls] == ["call_1-2", "c1-2"]


def test_cost_is_kept_where_the_provider_says_it() -> None:
    """OpenRouter says in the usage what a call cost."""
    stream = ChatCompletionStream()
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.25}}
    data = event(delta(content="a", finish="stop")) + event(usage)
    assert stream.feed(data + b"data: [DONE]\n\n") == [TextDelta("a"), Usage(3, 4, 0.25)]


def test_signed_reasoning_is_put_together_before_the_text() -> None:
    """OpenRouter's reasoning details come in pieces; the block goes back whole, with its signature."""
    stream = ChatCompletionStream()
    parts: list[dict[str, Any]] = [
        {"reasoning": "Hm", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Hm"}]},
        {"reasoning": ".", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "."}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "sig"}]},
        {"content": "Yes"},
    ]
    data = b"".join(event(delta(**part)) for part in parts)
    detail = {"type": "reasoning.text", "index": 0, "text": "Hm.", "signature": "sig"}
    assert stream.feed(data) == [
        ReasoningDelta("Hm."),
        ReasoningDelta("", {"reasoning_details": [detail]}),
        TextDelta("Yes"),
    ]


def test_reasoning_is_read_from_every_field_that_has_it() -> None:
    """Servers that send it only as `thinking`, or only as details without a signature, show it and get it back."""
    stream = ChatCompletionStream()
    assert stream.feed(event(delta(thinking="Hm."))) == [ReasoningDelta("Hm.")]
    stream = ChatCompletionStream()
    details = [{"type": "reasoning.summary", "index": 0, "summary": "Hm "}]
    more = [{"type": "reasoning.summary", "index": 0, "summary": "so."}]
    data = event(delta(reasoning_details=details)) + event(delta(reasoning_details=more)) + event(delta(content="Yes"))
    joined = {"type": "reasoning.summary", "index": 0, "summary": "Hm so."}
    assert stream.feed(data) == [
        ReasoningDelta("Hm so."),
        ReasoningDelta("", {"reasoning_details": [joined]}),
        TextDelta("Yes"),
    ]


def test_words_before_a_line_that_is_too_long_are_kept() -> None:
    """E1: what arrived whole is shown, also when it came in one read with what goes over a limit."""
    words = b'data: {"choices":[{"delta":{"content":"Half an "}}]}\n\n'
    for stream, more in (
        (ChatCompletionStream(max_event=200), b"data: " + b"x" * 300),
        (ChatCompletionStream(max_event=200), b"data: " + b"x" * 300 + b"\n\n"),
        (ChatCompletionStream(max_answer=200), b": " + b"x" * 300 + b"\n\n"),
    ):
        assert stream.feed(words + more) == [TextDelta("Half an ")]
        assert stream.error is not None
        assert stream.error.code == "protocol"
        assert stream.feed(words) == ()


BEGUN = event(delta(content="Half"))
EMPTY = b'{"choices":[' + b"{}," * 200_000 + b"{}]}"


@pytest.mark.parametrize(
    "data",
    [
        b"data: " + EMPTY + b"\n\n",
        b"data: " + EMPTY.replace(b"[", b"[\ndata: ") + b"\n\n",
        b'data: {"a":[' + b'"",' * 100_000 + b'""]}\n\n',
        b'data: {"\x01":"\x02","a":[' + b"[]," * 200_000 + b'"\x01"]}\n\n',
        b"data: {}\n" * 30_000 + b"\n",
    ],
    ids=["structure", "two lines", "strings", "control characters", "lines"],
)
def test_an_event_of_too_many_values_is_not_parsed(data: bytes) -> None:
    """L6: nothing else runs while an event is parsed; what came before it was given out."""
    stream = ChatCompletionStream()
    assert stream.feed(BEGUN + data) == [TextDelta("Half")]
    assert stream.error is not None
    assert stream.error.code == "protocol"


def test_a_whole_answer_of_too_many_values_is_not_parsed() -> None:
    """L6: the same for an answer that is no stream."""
    stream = ChatCompletionStream()
    assert stream.read_whole(EMPTY) == ()
    assert stream.error is not None
    assert "too many values" in stream.error.detail


def test_a_large_event_of_text_is_read() -> None:
    """A long text, with quotation marks and brackets, is one value; chunks without blank lines between them are not one
    event."""
    text = '[],{"' * 100_000
    stream = ChatCompletionStream()
    assert stream.feed(BEGUN + event(delta(content=text)) + event(delta(finish="stop"))) == [TextDelta("Half" + text)]
    lines = b"data: " + json.dumps(delta(content="x")).encode() + b"\n"
    stream = ChatCompletionStream()
    assert stream.feed(lines * 10_000 + b"\n") == [TextDelta("x" * 10_000)]


def test_pieces_of_reasoning_details_are_joined_in_linear_time() -> None:
    """L6: a long block is not copied again with each of its pieces."""
    first, piece = [
        event({"choices": [{"delta": {"reasoning_details": [{"type": "t", "text": text}]}}]})
        for text in ("x" * 3_000_000, "y")
    ]
    stream = ChatCompletionStream()
    began = time.process_time()
    stream.feed(first)
    for _ in range(100):
        stream.feed(piece * 400)
    took = time.process_time() - began
    (found,) = [d for d in stream.feed(event(delta(content="So."))) if isinstance(d, ReasoningDelta) and d.provider]
    assert found.provider == {"reasoning_details": [{"type": "t", "text": "x" * 3_000_000 + "y" * 40_000}]}
    assert took < 1.0
