"""Answers that say by their status or kind that they are none."""

import gzip

from tests.models.hostile_case import broken, case, error, recovers
from tests.upstream import Chunk, Close, End, Head, Raw, answers, delta, sse

STATUSES = (
    case("401", error(401, "Incorrect API key provided: sk-very-secret-0123456789"), code="auth", says="TEST_API_KEY"),
    case("403", error(403, "not for this key"), code="auth", says="not for this key"),
    case("402", error(402, "no credit"), code="rate-limit", says="no credit"),
    case("404", error(404, "model gone", code="model_not_found"), code="bad-request", says="Choose another model"),
    case(
        "400 for a full context",
        error(400, "This model's maximum context length is 4096 tokens", code="context_length_exceeded"),
        code="context-length",
        says="Summarize",
    ),
    case("400 for a policy", error(400, "blocked", code="content_policy_violation"), code="refused"),
    case(
        "400 for something else",
        error(400, "messages must not be empty"),
        code="bad-request",
        says="messages must not be empty",
    ),
    case(
        "400 for a setting",
        error(400, "temperature must be below 2"),
        code="unsupported-temperature",
        says="temperature must be below 2",
    ),
    case("413", answers(413, "<html>Too large</html>", Content_Type="text/html"), code="context-length"),
    case("422 in another form", answers(422, {"detail": [{"msg": "bad field"}]}), code="bad-request", says="bad field"),
    recovers("429, then well", answers(429, {"error": {"message": "slow down"}}, Retry_After="7"), slept=(7.0,)),
    recovers(
        "429 with a date", answers(429, {"error": "slow"}, Retry_After="Tue, 14 Nov 2023 22:13:30 GMT"), slept=(10.0,)
    ),
    case(
        "429 without Retry-After",
        error(429, "slow down"),
        code="rate-limit",
        says=("slow down", "later"),
        requests=3,
        slept=(0.25, 0.5),
    ),
    case("429 for an hour", answers(429, {"error": "slow"}, Retry_After="3600"), code="rate-limit", says="60 min"),
    case(
        "429 for good",
        error(429, "You exceeded your current quota", code="insufficient_quota"),
        code="rate-limit",
        says="plan",
    ),
    recovers("500, then well", answers(500, "oops", Content_Type="text/plain")),
    case("500 forever", error(500, "boom"), code="unavailable", says=("boom", "minute"), requests=3),
    recovers("503 with Retry-After of 0", answers(503, b"", Retry_After="0"), slept=(0.0,)),
    recovers("529", error(529, "Overloaded", type="overloaded_error")),
    case("an unknown status", answers(418, "I am a teapot"), code="bad-request", says="teapot"),
    case(
        "a redirect",
        [Head(307, {"Location": "https://elsewhere.example/v1", "Content-Length": "0"}, chunked=False)],
        code="bad-request",
        says="https://elsewhere.example/v1",
    ),
    case(
        "a web page",
        answers(200, "<!doctype html><title>Welcome</title>", Content_Type="text/html; charset=utf-8"),
        code="protocol",
        says=("web page", "base URL"),
    ),
    case(
        "a whole answer instead of a stream",
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
        text="Whole",
        reasoning="Hm.",
        usage=(2, 1),
    ),
    recovers("a whole answer that is an error", answers(200, {"error": {"message": "out of memory"}})),
    case("JSON of something else", answers(200, {"hello": "world"}), code="protocol", says="no choices"),
    case("JSON of too many values", answers(200, {"choices": [{}] * 200_000}), code="protocol", says="too many values"),
    case("JSON that is none", answers(200, "{"), code="protocol", requests=3),
    case("no content type", [Head(200, {}), *sse(delta(content="Yes", finish="stop")), End()], text="Yes"),
    case(
        "gzip",
        [
            Head(200, {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}),
            Chunk(gzip.compress(b'data: {"choices":[{"delta":{"content":"Yes"},"finish_reason":"stop"}]}\n\n')),
            End(),
        ],
        text="Yes",
    ),
    recovers(
        "gzip that is none",
        [Head(200, {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}), Chunk(b"data: {}\n\n"), End()],
    ),
    case("not HTTP", [Raw(b"SSH-2.0-OpenSSH_9.2\r\n"), Close()], code="protocol", requests=3),
    broken("chunks that are none", Raw(b"zzz\r\nnonsense\r\n"), Close(), code="unavailable"),
)
