"""What every request passes before a route sees it, as plain ASGI: access, size of the body, headers, log."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.core.errors import StorageError
from holdfast.faces.http import access, problems
from holdfast.faces.http.gate import Gate
from holdfast.faces.http.stream import STREAM, Streaming

log = logging.getLogger("holdfast.http")

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
SECURITY: Final = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


_KEPT: Final = ("type", "asgi", "method", "path", "http_version", "extensions")
"""What of a request is still needed when only its stream is left."""


Refusal = Callable[[int, str, str, Mapping[str, str] | None], Response]
"""Status, code, a sentence and headers, in the shape that a face's clients read."""


class Guard:
    def __init__(
        self,
        app: ASGIApp,
        gate: Gate,
        max_body: int,
        answered: "Counter[tuple[str, int]]",
        refusals: Mapping[str, Refusal] = MappingProxyType({}),
    ) -> None:
        """`answered` counts requests by method and status, for the metrics. `refusals`: the shape of what is refused,
        by how the path begins; problem JSON elsewhere."""
        self._refusals = refusals
        self._app = app
        self._gate = gate
        self._max_body = max_body
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, scope, self._answered)
        refused = self._refuse(scope)
        if refused is not None:
            await refused(scope, receive, answer.send)
        elif scope["method"] in access.SAFE or scope["path"] in access.OWN_BODIES:
            await self._app(scope, receive, answer.send)
        else:
            await self._app(scope, _Limited(receive, self._max_body).receive, answer.send)
        stream: Streaming | None = scope.pop(STREAM, None)
        if stream is not None:
            _shrink(scope)
            await stream.run(scope, receive, send, answer.send)

    def _refuse(self, scope: Scope) -> Response | None:
        headers = _headers(scope)
        length = headers.get("content-length", "0")
        has_body = "transfer-encoding" in headers or length.strip() not in ("", "0")
        facts = access.Facts(scope["method"], scope["path"], headers, has_body)
        try:
            denied = access.judge(facts, password_set=self._gate.password_set, shown=self._gate.check(headers))
        except StorageError as error:
            later = {"Retry-After": str(problems.RETRY_AFTER)}
            return self._say(facts.path, problems.status_of(error), error.code, str(error), later)
        if denied is None:
            if length.isdigit() and int(length) > self._max_body and scope["path"] not in access.OWN_BODIES:
                return self._say(facts.path, 413, "too-large", _over(self._max_body), None)
            return None
        if denied.status == 401 and facts.method == "GET" and "text/html" in headers.get("accept", ""):
            return RedirectResponse("/login", 303)
        extra = {"WWW-Authenticate": "Bearer"} if denied.status == 401 else None
        return self._say(facts.path, denied.status, denied.code, denied.detail, extra)

    def _say(self, path: str, status: int, code: str, detail: str, headers: Mapping[str, str] | None) -> Response:
        shapes = [shape for prefix, shape in self._refusals.items() if path.startswith(prefix)]
        return (shapes[0] if shapes else problems.problem)(status, code, detail, headers)


def _over(limit: int) -> str:
    return f"The body is over the limit of {limit} bytes."


class _Limited:
    """Counts what arrives: a length that was announced may be missing or a lie."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._got = 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._got += len(message.get("body", b""))
            if self._got > self._limit:
                raise HTTPException(413, _over(self._limit))
        return message


class _Answer:
    """Adds the headers, and one line to the log: what was asked and how it went, never what was said."""

    def __init__(self, send: Send, scope: Scope, answered: "Counter[tuple[str, int]]") -> None:
        self._send = send
        self._scope = scope
        self._answered = answered
        self._began = time.perf_counter()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            have = {name.lower() for name, _ in message.get("headers", ())}
            missing = [pair for pair in SECURITY if pair[0] not in have]
            message = {**message, "headers": [*message.get("headers", ()), *missing]}
            self._note(message["status"])
        await self._send(message)

    def _note(self, status: int) -> None:
        scope = self._scope
        self._answered[(scope["method"], status)] += 1
        if log.isEnabledFor(logging.INFO):
            fields: dict[str, Any] = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round((time.perf_counter() - self._began) * 1000, 1),
            }
            log.info("%(method)s %(path)s %(status)d %(ms).1f ms", fields, extra={"fields": fields})


def _shrink(scope: Scope) -> None:
    """For as long as the stream lasts. Emptied first: a table that was large stays so."""
    kept = {name: scope[name] for name in _KEPT if name in scope}
    scope.clear()
    scope.update(kept)


def _headers(scope: Scope) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers
