"""Answers that break: errors, closed connections, silence."""

from tests.models.hostile_case import BEGUN, BORED, HASTY, IMPATIENT, SHORT, broken, case, recovers, stream
from tests.upstream import Chunk, Close, End, Forever, Hang, Head, Raw, Reset, delta, sse

BREAKS = (
    recovers("an error object at the start", stream({"error": {"message": "overloaded", "code": 503}})),
    broken(
        "an error object in mid-stream",
        *sse({"error": {"message": "GPU fell off", "type": "server_error"}}),
        Hang(),
        code="unavailable",
        says="GPU fell off",
    ),
    broken("an error as text in mid-stream", *sse({"error": "it broke"}), Hang(), code="unavailable", says="it broke"),
    case(
        "an error in a choice",
        [
            *BEGUN,
            *sse(
                {
                    "choices": [
                        {
                            "delta": {"content": "answer"},
                            "error": {"code": 502, "message": "upstream died"},
                            "finish_reason": "error",
                        }
                    ]
                }
            ),
            Hang(),
        ],
        text="Half an answer",
        code="unavailable",
        says="upstream died",
    ),
    broken(
        "an error without a wrapper",
        *sse({"object": "error", "message": "prompt is too long", "code": 400}),
        Hang(),
        code="context-length",
    ),
    broken(
        "an error line of llama.cpp",
        Chunk(b'error: {"code":500,"message":"no slot","type":"server_error"}\n\n'),
        End(),
        code="unavailable",
        says="no slot",
    ),
    case(
        "the last words come with the error",
        [
            Head(),
            Chunk(b'data: {"choices":[{"delta":{"content":"last words"}}]}\n\ndata: {"error":"dead"}\n\n'),
            Hang(),
        ],
        text="last words",
        code="unavailable",
    ),
    recovers("closed before the answer", [Close()]),
    recovers("reset before the answer", [Reset()]),
    recovers("closed after the head", [Head(), Close()]),
    recovers("closed in the head", [Raw(b"HTTP/1.1 200 OK\r\nContent-"), Close()]),
    broken("closed in mid-stream", Close(), code="unavailable", says="middle of the answer"),
    broken("reset in mid-stream", Reset(), code="unavailable"),
    broken("closed in mid-chunk", Raw(b"ff\r\ndata: {"), Close(), code="unavailable", says="middle of the answer"),
    case(
        "words and the break arrive together",
        [Head(), Raw(b'2f\r\ndata: {"choices":[{"delta":{"content":"A"}}]}\n\n\r\nff\r\nda'), Reset()],
        text="A",
        code="unavailable",
    ),
    case(
        "all in one write, then closed",
        [
            Raw(
                b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n2f\r\ndata: {"choices":[{"delta":{"content":"A"}}]}\n\n\r\nff\r\nda'
            ),
            Close(),
        ],
        text="A",
        code="unavailable",
    ),
    case("closed after the finish reason", [Head(), *sse(delta(content="Fine", finish="stop")), Close()], text="Fine"),
    case(
        "a body that ends with the connection",
        [
            Head(200, {"Content-Type": "text/event-stream", "Connection": "close"}, chunked=False),
            Raw(b'data: {"choices":[{"delta":{"content":"Fine"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
            Close(),
        ],
        text="Fine",
    ),
    case("hangs before the head", [Hang()], code="timeout", says="0.2 s", timeouts=SHORT),
    case(
        "hangs before the first delta",
        [Head(), Chunk(b": wait\n\n"), Hang()],
        code="timeout",
        says="0.2 s",
        timeouts=SHORT,
    ),
    case(
        "keep-alives and no first delta", [Head(), Forever(Chunk(b": still here\n\n"))], code="timeout", timeouts=SHORT
    ),
    broken("hangs in mid-stream", Hang(), code="timeout", says="no data for", timeouts=IMPATIENT),
    broken(
        "keep-alives and no further delta",
        Forever(Chunk(b": still here\n\n")),
        code="timeout",
        says="no data for",
        timeouts=BORED,
    ),
    case("hangs in the body of an error", [Head(500), Chunk(b'{"err'), Hang()], code="timeout", timeouts=SHORT),
    case(
        "hangs after the finish reason",
        [Head(), *sse(delta(content="Fine"), delta(finish="stop")), Hang()],
        text="Fine",
        timeouts=HASTY,
    ),
    case(
        "keep-alives after the finish reason",
        [Head(), *sse(delta(content="Fine"), delta(finish="stop")), Forever(Chunk(b": still here\n\n"))],
        text="Fine",
        timeouts=HASTY,
    ),
    case(
        "hangs after the end mark", [Head(), *sse(delta(content="Fine", finish="stop"), "[DONE]"), Hang()], text="Fine"
    ),
)
