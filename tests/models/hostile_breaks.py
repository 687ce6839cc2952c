"""Answers that break: errors, closed connections, silence."""

from tests.models.hostile_case import BEGUN, BORED, HASTY, IMPATIENT, OK, SHORT, Case, stream
from tests.upstream import Chunk, Close, End, Forever, Hang, Head, Raw, Reset, delta, sse

BREAKS = (
    Case(
        "an error object at the start",
        (stream({"error": {"message": "overloaded", "code": 503}}), OK),
        text="All good",
        requests=2,
    ),
    Case(
        "an error object in mid-stream",
        ([*BEGUN, *sse({"error": {"message": "GPU fell off", "type": "server_error"}}), Hang()],),
        text="Half an ",
        code="unavailable",
        says=("GPU fell off",),
    ),
    Case(
        "an error as text in mid-stream",
        ([*BEGUN, *sse({"error": "it broke"}), Hang()],),
        text="Half an ",
        code="unavailable",
        says=("it broke",),
    ),
    Case(
        "an error in a choice",
        (
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
        ),
        text="Half an answer",
        code="unavailable",
        says=("upstream died",),
    ),
    Case(
        "an error without a wrapper",
        ([*BEGUN, *sse({"object": "error", "message": "prompt is too long", "code": 400}), Hang()],),
        text="Half an ",
        code="context-length",
    ),
    Case(
        "an error line of llama.cpp",
        ([*BEGUN, Chunk(b'error: {"code":500,"message":"no slot","type":"server_error"}\n\n'), End()],),
        text="Half an ",
        code="unavailable",
        says=("no slot",),
    ),
    Case(
        "the last words come with the error",
        (
            [
                Head(),
                Chunk(b'data: {"choices":[{"delta":{"content":"last words"}}]}\n\ndata: {"error":"dead"}\n\n'),
                Hang(),
            ],
        ),
        text="last words",
        code="unavailable",
    ),
    Case("closed before the answer", ([Close()], OK), text="All good", requests=2),
    Case("reset before the answer", ([Reset()], OK), text="All good", requests=2),
    Case("closed after the head", ([Head(), Close()], OK), text="All good", requests=2),
    Case("closed in the head", ([Raw(b"HTTP/1.1 200 OK\r\nContent-"), Close()], OK), text="All good", requests=2),
    Case(
        "closed in mid-stream",
        ([*BEGUN, Close()],),
        text="Half an ",
        code="unavailable",
        says=("middle of the answer",),
    ),
    Case("reset in mid-stream", ([*BEGUN, Reset()],), text="Half an ", code="unavailable"),
    Case(
        "closed in mid-chunk",
        ([*BEGUN, Raw(b"ff\r\ndata: {"), Close()],),
        text="Half an ",
        code="unavailable",
        says=("middle of the answer",),
    ),
    Case(
        "words and the break arrive together",
        ([Head(), Raw(b'2f\r\ndata: {"choices":[{"delta":{"content":"A"}}]}\n\n\r\nff\r\nda'), Reset()],),
        text="A",
        code="unavailable",
    ),
    Case(
        "all in one write, then closed",
        (
            [
                Raw(
                    b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n2f\r\ndata: {"choices":[{"delta":{"content":"A"}}]}\n\n\r\nff\r\nda'
                ),
                Close(),
            ],
        ),
        text="A",
        code="unavailable",
    ),
    Case(
        "closed after the finish reason", ([Head(), *sse(delta(content="Fine", finish="stop")), Close()],), text="Fine"
    ),
    Case(
        "a body that ends with the connection",
        (
            [
                Head(200, {"Content-Type": "text/event-stream", "Connection": "close"}, chunked=False),
                Raw(b'data: {"choices":[{"delta":{"content":"Fine"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
                Close(),
            ],
        ),
        text="Fine",
    ),
    Case("hangs before the head", ([Hang()],), code="timeout", says=("0.2 s",), endpoint={"patience": SHORT}),
    Case(
        "hangs before the first delta",
        ([Head(), Chunk(b": wait\n\n"), Hang()],),
        code="timeout",
        says=("0.2 s",),
        endpoint={"patience": SHORT},
    ),
    Case(
        "keep-alives and no first delta",
        ([Head(), Forever(Chunk(b": still here\n\n"))],),
        code="timeout",
        endpoint={"patience": SHORT},
    ),
    Case(
        "hangs in mid-stream",
        ([*BEGUN, Hang()],),
        text="Half an ",
        code="timeout",
        says=("nothing came",),
        endpoint={"patience": IMPATIENT},
    ),
    Case(
        "keep-alives and no further delta",
        ([*BEGUN, Forever(Chunk(b": still here\n\n"))],),
        text="Half an ",
        code="timeout",
        says=("nothing came",),
        endpoint={"patience": BORED},
    ),
    Case(
        "hangs in the body of an error",
        ([Head(500), Chunk(b'{"err'), Hang()],),
        code="timeout",
        endpoint={"patience": SHORT},
    ),
    Case(
        "hangs after the finish reason",
        ([Head(), *sse(delta(content="Fine"), delta(finish="stop")), Hang()],),
        text="Fine",
        endpoint={"patience": HASTY},
    ),
    Case(
        "keep-alives after the finish reason",
        ([Head(), *sse(delta(content="Fine"), delta(finish="stop")), Forever(Chunk(b": still here\n\n"))],),
        text="Fine",
        endpoint={"patience": HASTY},
    ),
    Case(
        "hangs after the end mark",
        ([Head(), *sse(delta(content="Fine", finish="stop"), "[DONE]"), Hang()],),
        text="Fine",
    ),
)
