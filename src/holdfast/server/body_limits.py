"""Limits the size of a request's body, the number of values in it, and the time that a client takes to send it. The
sizes are `ServerLimits` in `server.context`."""

from typing import Final

import anyio
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from holdfast.core.json_limits import JsonCounter
from holdfast.core.size_text import MIB, size_text
from holdfast.server.access_rules import PATHS_WITHOUT_LOGIN, other_body_type

_LOGIN_BODY: Final = 8 * 1024
_LOGIN_TIME: Final = 10.0  # Seconds in which a body must be complete where anybody may send one
_WAIT: Final = 30.0  # Seconds that the server waits for each `_PROGRESS` bytes of any other body, or for its end
_PROGRESS: Final = 240 * 1024
_UNCOUNTED: Final = 64 * 1024  # Bytes of a body whose values are not counted
_MAX_VALUES: Final = (("/v1/embeddings", 320_000), ("/v1/", 200_000), ("", 20_000))
"""By the beginning of the path. The time to read JSON goes with the number of its values, and nothing else runs while a
parser works, in whatever thread. A conversation below `/v1` has 10,000 messages of about ten values; OpenAI's limit for
embeddings is 300,000 tokens in a call."""
_MAX_STRUCTURE: Final = 3 * MIB  # Bytes that are not in texts: a number of 4,000 digits takes as long as 200 values


def is_too_large(path: str, length: str, max_body: int) -> bool:
    """Whether the declared `Content-Length` is over the limit of the path."""
    limit = _size_limit(path, max_body)
    return limit is not None and length.isdigit() and (len(length) > 18 or int(length) > limit)


def too_large_message(path: str, max_body: int) -> str:
    limit = _size_limit(path, max_body)
    return "The request body is too large." if limit is None else f"The request body is larger than {size_text(limit)}."


def limit_body(receive: Receive, path: str, max_body: int) -> Receive:
    """Counts the bytes that arrive, because Content-Length may be missing or wrong, and the time that the server
    waits for the client: an import may take longer to store than to send."""
    limit = _size_limit(path, max_body)
    longest = _LOGIN_TIME if path in PATHS_WITHOUT_LOGIN else _WAIT
    max_values = None if limit is None else next(most for start, most in _MAX_VALUES if path.startswith(start))
    counter = JsonCounter()
    received, complete = 0, False
    waited, progress = 0.0, 0

    async def receive_limited() -> Message:
        nonlocal received, complete, waited, progress
        if complete:
            return await receive()  # waits for the client to disconnect
        began = anyio.current_time()
        try:
            with anyio.fail_after(max(longest - waited, 0.0)):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, "The request body did not arrive in time.", {"Connection": "close"}) from None
        body = message.get("body", b"")
        size = len(body)
        received, progress, waited = received + size, progress + size, waited + anyio.current_time() - began
        if progress >= _PROGRESS:
            waited, progress = 0.0, 0
        if limit is not None and received > limit:
            raise HTTPException(413, too_large_message(path, max_body))
        complete = not message.get("more_body", False)
        if max_values is not None and (received > _UNCOUNTED or not complete):
            counter.add(body)
            _check_structure(counter, max_values)
        return message

    return receive_limited


def _check_structure(counter: JsonCounter, max_values: int) -> None:
    if counter.values > max_values:
        counted = "each text, number, list and object counts as one"
        raise HTTPException(413, f"The request body has more than {max_values:,} values: {counted}.")
    if counter.structure > _MAX_STRUCTURE:
        raise HTTPException(413, f"The request body has more than {size_text(_MAX_STRUCTURE)} outside of texts.")


def _size_limit(path: str, max_body: int) -> int | None:
    """None for uploads and imports, which count for themselves."""
    if path in PATHS_WITHOUT_LOGIN:
        return _LOGIN_BODY
    return max_body if other_body_type(path) is None else None
