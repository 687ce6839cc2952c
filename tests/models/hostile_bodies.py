"""Bodies of answers: odd, broken, and odd but right."""

from tests.models.hostile_case import FINISHED, OK, broken, case, stream
from tests.upstream import Chunk, End, Forever, Head, delta, says, sse

BODIES = (
    case("plain answer", OK, text="All good"),
    case("no answer but the end mark", stream(), code="protocol", says="without any content", requests=3),
    case("nothing at all", [Head(), End()], code="protocol", says="base URL", requests=3),
    case("end mark missing", stream(delta(content="Fine"), FINISHED, done=False), text="Fine"),
    case("finish reason missing", stream(delta(content="Fine")), text="Fine", finish=None),
    case(
        "both missing",
        stream(delta(content="Half"), done=False),
        text="Half",
        code="unavailable",
        says="middle of the answer",
    ),
    case("only a finish reason", stream(FINISHED)),
    case("content filter before any word", stream(delta(finish="content_filter")), code="refused", says="rephrasing"),
    case("cut by the token limit", says("Too sho", finish="length"), text="Too sho", finish="length"),
    case("garbage lines", [Head(), Chunk(b"\x00\x01garbage\n\nmore: of it\n\n"), End()], code="protocol", requests=3),
    broken("garbage in a chunk", *sse('{"choices": [{"del'), End(), code="protocol", says="not valid JSON"),
    broken("a chunk that is a list", *sse([1, 2]), End(), code="protocol"),
    case(
        "null where things should be",
        stream({"choices": [{"delta": None}], "usage": None}, delta(content=None), delta(content="Here"), FINISHED),
        text="Here",
    ),
    case(
        "unknown fields and events",
        stream({"ping": 1}, {"choices": [{"delta": {"content": "Known", "aura": 7}, "mood": []}], "x": {}}, FINISHED),
        text="Known",
    ),
    case("choices empty", stream({"choices": []}, delta(content="Yes"), {"choices": []}, FINISHED), text="Yes"),
    case(
        "choices of the wrong shape",
        stream({"choices": "none"}, {"choices": [7]}, delta(content="Yes"), FINISHED),
        text="Yes",
    ),
    case(
        "usage only",
        stream({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}),
        code="protocol",
        requests=3,
    ),
    case(
        "usage in its own chunk",
        stream(delta(content="Yes"), FINISHED, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}}),
        text="Yes",
        usage=(3, 5),
    ),
    case(
        "usage with every chunk",
        stream(
            {**delta(content="a"), "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
            {**delta(content="b", finish="stop"), "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        ),
        text="ab",
        usage=(3, 2),
    ),
    case(
        "usage that is no number",
        stream(
            delta(content="Yes", finish="stop"),
            {"choices": [], "usage": {"prompt_tokens": "3", "completion_tokens": -1}},
        ),
        text="Yes",
    ),
    case(
        "usage of absurd size",
        stream(
            delta(content="Yes"),
            FINISHED,
            {
                "choices": [],
                "usage": {"prompt_tokens": 3, "completion_tokens": 5, "prompt_cache_hit_tokens": 10**400},
            },
            {"choices": [], "usage": {"prompt_tokens": 10**400, "completion_tokens": 5}},
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 10**4000}},
        ),
        text="Yes",
        usage=(3, 5),
    ),
    case(
        "NaN in it",
        stream('{"choices":[{"delta":{"content":"Yes"},"logprobs":NaN,"finish_reason":"stop"}]}'),
        text="Yes",
    ),
    broken("deep nesting", *sse('{"choices":' + "[" * 100_000 + "]" * 100_000 + "}"), End(), code="protocol"),
    case(
        "a number of ten thousand digits",
        stream(delta(content="a"), '{"created": ' + "9" * 10_000 + "}", FINISHED),
        text="a",
        code="protocol",
    ),
    case(
        "invalid UTF-8",
        stream(b'{"choices":[{"delta":{"content":"a\xff\xc3b"},"finish_reason":"stop"}]}'),
        text="a\ufffd\ufffdb",
    ),
    case(
        "a lone surrogate",
        stream('{"choices":[{"delta":{"content":"a\\ud83d!"},"finish_reason":"stop"}]}'),
        text="a\ufffd!",
    ),
    case(
        "a character cut in two",
        [
            Head(),
            Chunk('data: {"choices":[{"delta":{"content":"né'.encode()[:-1]),
            Chunk('é"},"finish_reason":"stop"}]}\n\n'.encode()[1:]),
            End(),
        ],
        text="né",
    ),
    case(
        "a byte-order mark",
        [Head(), Chunk(b"\xef\xbb"), Chunk(b"\xbf"), *sse(delta(content="Yes", finish="stop")), End()],
        text="Yes",
    ),
    case("CRLF", [Head(), *sse(delta(content="Yes", finish="stop"), "[DONE]", end=b"\r\n\r\n"), End()], text="Yes"),
    case("CR alone", [Head(), *sse(delta(content="Yes", finish="stop"), "[DONE]", end=b"\r\r"), End()], text="Yes"),
    case(
        "data over several lines",
        [
            Head(),
            Chunk(b'data: {"choices":\ndata: [{"delta":\ndata:{"content":"Yes"},"finish_reason":"stop"}]}\n\n'),
            End(),
        ],
        text="Yes",
    ),
    case(
        "no blank lines between events",
        [Head(), *sse(delta(content="Y"), delta(content="es", finish="stop"), "[DONE]", end=b"\n"), End()],
        text="Yes",
    ),
    case(
        "keep-alive comments",
        [
            Head(),
            Chunk(b": PROCESSING\n\n"),
            Chunk(b":\n\n"),
            *sse(delta(content="Yes", finish="stop")),
            Chunk(b": x\n\n"),
            End(),
        ],
        text="Yes",
    ),
    case("no newline at the end", [Head(), *sse(delta(content="Yes", finish="stop"), end=b""), End()], text="Yes"),
    case("something after the end mark", stream(delta(content="Yes", finish="stop"), "[DONE]", "junk{"), text="Yes"),
    broken(
        "a huge line",
        Forever(Chunk(b"data: " + b"x" * 50_000)),
        code="protocol",
        says="200,000 bytes",
        policy={"max_event": 200_000},
    ),
    broken(
        "an endless stream",
        Forever(Chunk(b": " + b"x" * 50_000 + b"\n\n")),
        code="protocol",
        says="did not end",
        policy={"max_answer": 1_000_000},
    ),
    case(
        "a second choice",
        stream(
            {"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]}, FINISHED
        ),
        text="yes",
    ),
    case(
        "content in parts",
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
        text="Yes",
        reasoning="Hm.",
    ),
    case(
        "reasoning_content",
        stream(delta(reasoning_content="Let me "), delta(reasoning_content="see."), delta(content="Yes"), FINISHED),
        text="Yes",
        reasoning="Let me see.",
    ),
    case(
        "reasoning",
        stream(delta(reasoning="Hm.", content=""), delta(content="Yes"), FINISHED),
        text="Yes",
        reasoning="Hm.",
    ),
    case("a refusal in words", stream(delta(refusal="I cannot."), FINISHED), text="I cannot."),
)
