"""Answers that say by their status or kind that they are none."""

import gzip

from tests.models.hostile_case import BEGUN, OK, Case, error
from tests.upstream import Chunk, Close, End, Head, Raw, answers, delta, sse

STATUSES = (
    Case(
        "401",
        (error(401, "Incorrect API key provided: sk-very-secret-0123456789"),),
        code="auth",
        says=("TEST_API_KEY",),
    ),
    Case("403", (error(403, "not for this key"),), code="auth", says=("not for this key",)),
    Case("402", (error(402, "no credit"),), code="rate-limit", says=("no credit",)),
    Case(
        "404", (error(404, "model gone", code="model_not_found"),), code="bad-request", says=("Choose another model",)
    ),
    Case(
        "400 for a full context",
        (error(400, "This model's maximum context length is 4096 tokens", code="context_length_exceeded"),),
        code="context-length",
        says=("Compact",),
    ),
    Case("400 for a policy", (error(400, "blocked", code="content_policy_violation"),), code="refused"),
    Case(
        "400 for something else",
        (error(400, "temperature must be below 2"),),
        code="bad-request",
        says=("temperature must be below 2",),
    ),
    Case("413", (answers(413, "<html>Too large</html>", Content_Type="text/html"),), code="context-length"),
    Case(
        "422 in another form",
        (answers(422, {"detail": [{"msg": "bad field"}]}),),
        code="bad-request",
        says=("bad field",),
    ),
    Case(
        "429, then well",
        (answers(429, {"error": {"message": "slow down"}}, Retry_After="7"), OK),
        text="All good",
        requests=2,
        slept=(7.0,),
    ),
    Case(
        "429 with a date",
        (answers(429, {"error": "slow"}, Retry_After="Tue, 14 Nov 2023 22:13:30 GMT"), OK),
        text="All good",
        requests=2,
        slept=(10.0,),
    ),
    Case(
        "429 without Retry-After",
        (error(429, "slow down"),),
        code="rate-limit",
        says=("slow down", "later"),
        requests=3,
        slept=(0.25, 0.5),
    ),
    Case(
        "429 for an hour", (answers(429, {"error": "slow"}, Retry_After="3600"),), code="rate-limit", says=("60 min",)
    ),
    Case(
        "429 for good",
        (error(429, "You exceeded your current quota", code="insufficient_quota"),),
        code="rate-limit",
        says=("plan",),
    ),
    Case("500, then well", (answers(500, "oops", Content_Type="text/plain"), OK), text="All good", requests=2),
    Case("500 for ever", (error(500, "boom"),), code="unavailable", says=("boom", "minute"), requests=3),
    Case(
        "503 with Retry-After of 0", (answers(503, b"", Retry_After="0"), OK), text="All good", requests=2, slept=(0.0,)
    ),
    Case("529", (error(529, "Overloaded", type="overloaded_error"), OK), text="All good", requests=2),
    Case("an unknown status", (answers(418, "I am a teapot"),), code="bad-request", says=("teapot",)),
    Case(
        "a redirect",
        ([Head(307, {"Location": "https://elsewhere.example/v1", "Content-Length": "0"}, chunked=False)],),
        code="bad-request",
        says=("https://elsewhere.example/v1",),
    ),
    Case(
        "a web page",
        (answers(200, "<!doctype html><title>Welcome</title>", Content_Type="text/html; charset=utf-8"),),
        code="protocol",
        says=("web page", "base URL"),
    ),
    Case(
        "a whole answer instead of a stream",
        (
            answers(
                200,
                {
                    "choices": [
                        {
                            "message": {"role": "assistant", "content": "Whole", "reasoning_content": "Hm."},
                            "finish_reason": "stop",
                        }
                    ],
                    "usage": {"prompt_tokens": 2, "completion_tokens": 1},
                },
            ),
        ),
        text="Whole",
        reasoning="Hm.",
        usage=(2, 1),
    ),
    Case(
        "a whole answer that is an error",
        (answers(200, {"error": {"message": "out of memory"}}), OK),
        text="All good",
        requests=2,
    ),
    Case("JSON of something else", (answers(200, {"hello": "world"}),), code="protocol", says=("no choices",)),
    Case("JSON that is none", (answers(200, "{"),), code="protocol", requests=3),
    Case("no content type", ([Head(200, {}), *sse(delta(content="Yes", finish="stop")), End()],), text="Yes"),
    Case(
        "gzip",
        (
            [
                Head(200, {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}),
                Chunk(gzip.compress(b'data: {"choices":[{"delta":{"content":"Yes"},"finish_reason":"stop"}]}\n\n')),
                End(),
            ],
        ),
        text="Yes",
    ),
    Case(
        "gzip that is none",
        (
            [
                Head(200, {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}),
                Chunk(b"data: {}\n\n"),
                End(),
            ],
            OK,
        ),
        text="All good",
        requests=2,
    ),
    Case("not HTTP", ([Raw(b"SSH-2.0-OpenSSH_9.2\r\n"), Close()],), code="protocol", requests=3),
    Case(
        "chunks that are none", ([*BEGUN, Raw(b"zzz\r\nnonsense\r\n"), Close()],), text="Half an ", code="unavailable"
    ),
)
