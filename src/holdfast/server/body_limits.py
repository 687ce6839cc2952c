"""Limits the size of a request's body and the time that a client takes to send it."""

from typing import Final

import anyio
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from holdfast.server.access_rules import NON_JSON_BODIES, PATHS_WITHOUT_LOGIN

_LOGIN_BODY: Final = 8 * 1024
_LOGIN_TIME: Final = 10.0  # Seconds in which a body must be complete where anybody may send one
_WAIT: Final = 30.0  # Seconds that the server waits for each `_PROGRESS` bytes of any other body, or for its end
_PROGRESS: Final = 240 * 1024


def is_too_large(path: str, length: str, max_body: int) -> bool:
    """Whether the declared `Content-Length` is over the limit of the path."""
    limit = _size_limit(path, max_body)
    return limit is not None and length.isdigit() and (len(length) > 18 or int(length) > limit)


def too_large_message(path: str, max_body: int) -> str:
    return f"The request body is larger than the limit of {_size_limit(path, max_body)} bytes."


def limit_body(receive: Receive, path: str, max_body: int) -> Receive:
    """Counts the bytes that arrive, because Content-Length may be missing or wrong, and the time that the server
    waits for the client: an import may take longer to store than to send."""
    limit = _size_limit(path, max_body)
    longest = _LOGIN_TIME if path in PATHS_WITHOUT_LOGIN else _WAIT
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
        size = len(message.get("body", b""))
        received, progress, waited = received + size, progress + size, waited + anyio.current_time() - began
        if progress >= _PROGRESS:
            waited, progress = 0.0, 0
        if limit is not None and received > limit:
            raise HTTPException(413, too_large_message(path, max_body))
        complete = not message.get("more_body", False)
        return message

    return receive_limited


def _size_limit(path: str, max_body: int) -> int | None:
    """None for uploads and imports, which count for themselves."""
    if path in PATHS_WITHOUT_LOGIN:
        return _LOGIN_BODY
    return None if path in NON_JSON_BODIES else max_body
