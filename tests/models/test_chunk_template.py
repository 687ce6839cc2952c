"""Chunks that are read by their shape say what they would say if they were parsed."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.events import TextDelta
from holdfast.models import chat_completion_stream
from holdfast.models.chat_completion_stream import ChatCompletionStream
from holdfast.models.chunk_template import learn
from holdfast.ports.model import Delta
from tests.models.asking import joined
from tests.upstream import delta

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["a", "a", "word ", "\n", '"', "\\", "content", '"content":"a"', "é", "\u2028", "data: ", "🙂"]
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["c", "a", "content"]),
        "created": st.integers(0, 2),
        "note": st.just({"choices": [{"delta": {"content": "a"}}]}),
        "usage": st.none() | st.just({"prompt_tokens": 1, "completion_tokens": 2}),
    },
)
chunks = st.builds(
    lambda text, more, reasoning, finish: {
        **more,
        **delta(finish, content=text, **({} if reasoning is None else {"reasoning_content": reasoning})),
    },
    words,
    fields,
    st.none() | st.sampled_from(["", "hm"]),
    st.none() | st.none() | st.just("stop"),
)


def line(chunk: Any, *, escaped: bool) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=escaped, separators=(",", ":")).encode() + b"\n\n"


def said(data: list[bytes], lessons: int) -> Any:
    stream = ChatCompletionStream()
    stream._template_attempts = lessons
    deltas: list[Delta] = []
    for piece in data:
        deltas.extend(stream.feed(piece))
    return joined([*deltas, *stream.finish()]), stream.finish_reason, stream.done, stream.error


@settings(deadline=None)
@given(
    st.lists(chunks, max_size=8),
    st.lists(st.integers(0, 8), max_size=12),
    st.booleans(),
    st.integers(1, 3),
    st.lists(st.integers(0, 4000), max_size=6),
)
def test_templates_change_nothing(
    made: list[Any], order: list[int], escaped: bool, together: int, cuts: list[int]
) -> None:
    """Whatever the chunks are and however they repeat, alone or several in a read, or cut anywhere: the answer is the
    parser's."""
    lines = [line(made[n % len(made)], escaped=escaped) for n in order] if made else []
    data = [b"".join(lines[at : at + together]) for at in range(0, len(lines), together)]
    if cuts:
        whole, at = b"".join(lines), [0, *sorted(cuts)]
        data = [whole[a:b] for a, b in pairwise([*at, len(whole) + 4000])]
    assert said(data, chat_completion_stream._TEMPLATE_ATTEMPTS) == said(data, 0)


def test_chunks_of_a_template_are_not_parsed() -> None:
    """The second text is the lesson, because many answers have only one; after it, texts come out alone, also from
    several events in a read, and what is not plain is parsed."""
    stream = ChatCompletionStream()
    stream.feed(line(delta(content="first"), escaped=False))
    assert not stream._has_template()
    stream.feed(line(delta(content=" one"), escaped=False))
    shape = stream._template
    assert shape is not None
    both = line(delta(content=" two"), escaped=False) + line(delta(content=" three"), escaped=False)
    assert shape.text(both) == " two three"
    assert shape.text(both + line(delta(content="\n"), escaped=False)) == " two three\n"
    assert shape.text(both + b"data: [DONE]\n\n") is None
    assert shape.text(line(delta("stop"), escaped=False)) is None
    assert shape.text(both[:-1]) is None
    assert stream.feed(both) == [TextDelta(" two three")]


def test_text_that_stands_elsewhere_too_teaches_nothing() -> None:
    """Where it cannot be told which of two places the text is from, or more than text is said, nothing is learned."""
    made: list[Any] = [
        {"id": "a", **delta(content="a")},
        delta(content='"'),
        delta("stop", content="a"),
        delta(content="a", reasoning_content="b"),
        {**delta(content="a"), "error": "broken"},
        {"choices": [{"index": 1, "delta": {"content": "a"}}]},
        {"choices": []},
    ]
    for chunk in made:
        assert learn(line(chunk, escaped=False)[6:-2], chunk) is None


def test_a_stream_whose_chunks_all_differ_gives_up_learning() -> None:
    """Each lesson costs a second parse, so there are few in vain."""
    stream = ChatCompletionStream()
    for n in range(20):
        stream.feed(line({"obfuscation": f"{n}x", **delta(content=f"w{n}")}, escaped=False))
    assert stream._template_attempts == 0
