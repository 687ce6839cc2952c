"""The tokens that travel through every server in the bench: each says which it is, and when it was sent.

`00042.0123456 `: the forty-third, sent at 1.23456 s of a clock that all processes of a machine share and that goes
round every hundred seconds. All are of one length, so that what surrounds them can be made once.
"""

import json
import re
import time
from typing import Final

TOKEN: Final = re.compile(rb"(\d{5})\.(\d{7}) ")
SIZE: Final = 14
ROUND: Final = 10_000_000
MOST: Final = 100_000
"""Tokens that one stream can have."""
NUMBERS: Final = [b"%05d" % n for n in range(MOST)]


def clock() -> int:
    """In units of ten microseconds."""
    return time.monotonic_ns() // 10_000 % ROUND


def delay_ms(sent: bytes, now: int) -> float:
    """A clock that went round in between is noticed; a token that is more than fifty seconds late is not."""
    late = (now - int(sent)) % ROUND
    return (late if late < ROUND // 2 else late - ROUND) / 100


def around(kind: str = "content") -> tuple[bytes, bytes]:
    """What OpenAI sends around the text of a token: an event of its own."""
    choice = {"index": 0, "delta": {kind: "\0"}, "logprobs": None, "finish_reason": None}
    chunk = {
        "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
        "object": "chat.completion.chunk",
        "created": 1741570283,
        "model": "bench",
        "service_tier": "default",
        "system_fingerprint": "fp_fc9f1d7035",
        "choices": [choice],
    }
    before, _, after = json.dumps(chunk, separators=(",", ":")).encode().partition(b"\\u0000")
    return b"data: " + before, after + b"\n\n"


END: Final = (
    b'data: {"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,'
    b'"model":"bench","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
"""How an answer ends."""
ENDINGS: Final = (b"[DONE]", b"run.complete")
"""By which a client knows that it has all of it."""
