"""The tokens that the upstream sends: each contains a word by which its place is checked, and the time at which it was
sent.

`metal.0123456 ` was sent at 1.23456 s of the monotonic clock, which all processes share, modulo one hundred seconds.
The words before the dot come in a fixed order. All tokens have the same length, so the bytes around them are made once.
Where the cost of the whole turn counts, most tokens have a second word instead of the time: a text that consists of
numbers which occur once, as no answer does, would make a search index cost several times what it costs a user. 500 such
tokens have about 170 different words, and 2,000 have 320, as English has.
"""

import json
import re
import time
from typing import Final

TOKEN: Final = re.compile(rb"([a-z]{5})\.([a-z]{7}|\d{7}) ")
SIZE: Final = 14
ROUND: Final = 10_000_000
MOST: Final = 100_000
"""Largest number of tokens in a stream."""
WORDS: Final = b"""
    another because believe between brought certain company country develop experts factors finally follows general
    however include kitchen largest machine measure million nothing outside partner perhaps picture problem process
    program project provide quickly reasons records require results science section service several similar society
    special station student subject support surface through traffic usually various village weather western whether
""".split()
_CYCLE: Final = b"""
    about above after again along among beach begin below blood board bread bring brown build carry catch cause chair
    chief child clean clear close color could count cover cross dance earth eight enter every field fight final first
    floor force fresh front fruit glass grand grass great green group heart heavy horse hotel house human judge light
    local metal
""".split()
PLACES: Final = [_CYCLE[n % len(_CYCLE)] for n in range(MOST)]
"""What each token of a stream begins with. A missing token, or two in the wrong order, break the sequence; a gap of a
whole cycle shows in the number of tokens."""


def clock() -> int:
    """In units of ten microseconds."""
    return time.monotonic_ns() // 10_000 % ROUND


def delay_ms(sent: bytes, now: int) -> float:
    """Handles a wrap of the clock; cannot tell a delay of more than fifty seconds."""
    late = (now - int(sent)) % ROUND
    return (late if late < ROUND // 2 else late - ROUND) / 100


def is_stamp(text: bytes) -> bool:
    return text.isdigit()


def around(kind: str = "content") -> tuple[bytes, bytes]:
    """The bytes that OpenAI sends before and after the text of a token."""
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
"""The end of an answer."""
ENDINGS: Final = (b"[DONE]", b"run.complete")
"""Marks by which a client recognizes the end."""
