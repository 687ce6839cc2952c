"""Bodies of answers: odd, broken, and odd but right."""

from tests.models.hostile_case import BEGUN, FINISHED, OK, Case, stream
from tests.upstream import Chunk, End, Forever, Head, delta, says, sse

BODIES = (
    Case("plain answer", (OK,), text="All good"),
    Case("no answer but the end mark", (stream(),), code="protocol", says=("without any content",), requests=3),
    Case("nothing at all", ([Head(), End()],), code="protocol", says=("base URL",), requests=3),
    Case("end mark missing", (stream(delta(content="Fine"), FINISHED, done=False),), text="Fine"),
    Case("finish reason missing", (stream(delta(content="Fine")),), text="Fine", finish=None),
    Case(
        "both missing",
        (stream(delta(content="Half"), done=False),),
        text="Half",
        code="unavailable",
        says=("middle of the answer",),
    ),
    Case("only a finish reason", (stream(FINISHED),)),
    Case(
        "content filter before any word",
        (stream(delta(finish="content_filter")),),
        code="refused",
        says=("other words",),
    ),
    Case("cut by the token limit", (says("Too sho", finish="length"),), text="Too sho", finish="length"),
    Case(
        "garbage lines", ([Head(), Chunk(b"\x00\x01garbage\n\nmore: of it\n\n"), End()],), code="protocol", requests=3
    ),
    Case(
        "garbage in a chunk",
        ([*BEGUN, *sse('{"choices": [{"del'), End()],),
        text="Half an ",
        code="protocol",
        says=("no valid JSON",),
    ),
    Case("a chunk that is a list", ([*BEGUN, *sse([1, 2]), End()],), text="Half an ", code="protocol"),
    Case(
        "null where things should be",
        (stream({"choices": [{"delta": None}], "usage": None}, delta(content=None), delta(content="Here"), FINISHED),),
        text="Here",
    ),
    Case(
        "unknown fields and events",
        (
            stream(
                {"ping": 1}, {"choices": [{"delta": {"content": "Known", "aura": 7}, "mood": []}], "x": {}}, FINISHED
            ),
        ),
        text="Known",
    ),
    Case("choices empty", (stream({"choices": []}, delta(content="Yes"), {"choices": []}, FINISHED),), text="Yes"),
    Case(
        "choices of the wrong shape",
        (stream({"choices": "none"}, {"choices": [7]}, delta(content="Yes"), FINISHED),),
        text="Yes",
    ),
    Case(
        "usage only",
        (stream({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}),),
        code="protocol",
        requests=3,
    ),
    Case(
        "usage in its own chunk",
        (
            stream(
                delta(content="Yes"), FINISHED, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}}
            ),
        ),
        text="Yes",
        usage=(3, 5),
    ),
    Case(
        "usage with every chunk",
        (
            stream(
                {**delta(content="a"), "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
                {**delta(content="b", finish="stop"), "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
            ),
        ),
        text="ab",
        usage=(3, 2),
    ),
    Case(
        "usage that is no number",
        (
            stream(
                delta(content="Yes", finish="stop"),
                {"choices": [], "usage": {"prompt_tokens": "3", "completion_tokens": -1}},
            ),
        ),
        text="Yes",
    ),
    Case(
        "NaN in it",
        (stream('{"choices":[{"delta":{"content":"Yes"},"logprobs":NaN,"finish_reason":"stop"}]}'),),
        text="Yes",
    ),
    Case(
        "deep nesting",
        ([*BEGUN, *sse('{"choices":' + "[" * 100_000 + "]" * 100_000 + "}"), End()],),
        text="Half an ",
        code="protocol",
    ),
    Case(
        "a number of ten thousand digits",
        (stream(delta(content="a"), '{"created": ' + "9" * 10_000 + "}", FINISHED),),
        text="a",
        code="protocol",
    ),
    Case(
        "invalid UTF-8",
        (stream(b'{"choices":[{"delta":{"content":"a\xff\xc3b"},"finish_reason":"stop"}]}'),),
        text="a\ufffd\ufffdb",
    ),
    Case(
        "a lone surrogate",
        (stream('{"choices":[{"delta":{"content":"a\\ud83d!"},"finish_reason":"stop"}]}'),),
        text="a\ufffd!",
    ),
    Case(
        "a character cut in two",
        (
            [
                Head(),
                Chunk('data: {"choices":[{"delta":{"content":"né'.encode()[:-1]),
                Chunk('é"},"finish_reason":"stop"}]}\n\n'.encode()[1:]),
                End(),
            ],
        ),
        text="né",
    ),
    Case(
        "a byte-order mark",
        ([Head(), Chunk(b"\xef\xbb"), Chunk(b"\xbf"), *sse(delta(content="Yes", finish="stop")), End()],),
        text="Yes",
    ),
    Case("CRLF", ([Head(), *sse(delta(content="Yes", finish="stop"), "[DONE]", end=b"\r\n\r\n"), End()],), text="Yes"),
    Case("CR alone", ([Head(), *sse(delta(content="Yes", finish="stop"), "[DONE]", end=b"\r\r"), End()],), text="Yes"),
    Case(
        "data over several lines",
        (
            [
                Head(),
                Chunk(b'data: {"choices":\ndata: [{"delta":\ndata:{"content":"Yes"},"finish_reason":"stop"}]}\n\n'),
                End(),
            ],
        ),
        text="Yes",
    ),
    Case(
        "no blank lines between events",
        ([Head(), *sse(delta(content="Y"), delta(content="es", finish="stop"), "[DONE]", end=b"\n"), End()],),
        text="Yes",
    ),
    Case(
        "keep-alive comments",
        (
            [
                Head(),
                Chunk(b": PROCESSING\n\n"),
                Chunk(b":\n\n"),
                *sse(delta(content="Yes", finish="stop")),
                Chunk(b": x\n\n"),
                End(),
            ],
        ),
        text="Yes",
    ),
    Case("no newline at the end", ([Head(), *sse(delta(content="Yes", finish="stop"), end=b""), End()],), text="Yes"),
    Case("something after the end mark", (stream(delta(content="Yes", finish="stop"), "[DONE]", "junk{"),), text="Yes"),
    Case(
        "a huge line",
        ([*BEGUN, Forever(Chunk(b"data: " + b"x" * 50_000))],),
        text="Half an ",
        code="protocol",
        says=("200,000 bytes",),
        endpoint={"max_event": 200_000},
    ),
    Case(
        "an endless stream",
        ([*BEGUN, Forever(Chunk(b": " + b"x" * 50_000 + b"\n\n"))],),
        text="Half an ",
        code="protocol",
        says=("did not end",),
        endpoint={"max_answer": 1_000_000},
    ),
    Case(
        "a second choice",
        (
            stream(
                {"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]},
                FINISHED,
            ),
        ),
        text="yes",
    ),
    Case(
        "content in parts",
        (
            stream(
                delta(
                    content=[
                        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                        {"type": "text", "text": "Yes"},
                        3,
                    ]
                ),
                FINISHED,
            ),
        ),
        text="Yes",
        reasoning="Hm.",
    ),
    Case(
        "reasoning_content",
        (stream(delta(reasoning_content="Let me "), delta(reasoning_content="see."), delta(content="Yes"), FINISHED),),
        text="Yes",
        reasoning="Let me see.",
    ),
    Case(
        "reasoning",
        (stream(delta(reasoning="Hm.", content=""), delta(content="Yes"), FINISHED),),
        text="Yes",
        reasoning="Hm.",
    ),
    Case("a refusal in words", (stream(delta(refusal="I cannot."), FINISHED),), text="I cannot."),
)
