"""ASGI middleware around every route: access control, body limits, security headers, request log. Which requests are
allowed is decided in `access_rules`; pages have security headers of their own (`web_app`, `html_pages`,
`routes.workspace`)."""

import logging
import os
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.core.errors import StorageError
from holdfast.server import access_rules, error_responses, html_pages, problem_details
from holdfast.server.authenticator import Authenticator
from holdfast.server.body_limits import is_too_large, limit_body, too_large_message
from holdfast.server.event_stream import STREAM, EventStream

log = logging.getLogger("holdfast.http")

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "media-src 'self'; "
    "connect-src 'self'; frame-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)
"""On every response that does not have its own."""
HSTS: Final = (b"strict-transport-security", b"max-age=31536000")  # Over HTTPS: a year without plain HTTP
_STREAM_SCOPE: Final = ("type", "asgi", "method", "path", "http_version", "extensions")
"""The parts of the scope that a running stream still needs."""


class AccessMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        max_body: int,
        request_counts: "Counter[tuple[str, int]]",
        *,
        password_needed: bool,
    ) -> None:
        """`request_counts` counts by method and status. `password_needed`: `access_rules.needs_password`."""
        self._app = app
        self._authenticator = authenticator
        self._is_still_valid = authenticator.is_still_valid  # One object for all streams
        self._max_body = max_body
        self._request_counts = request_counts
        self._password_needed = password_needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        sender = _ResponseSender(send, scope, self._request_counts, secure=access_rules.is_https(headers))
        denied, credentials = await self._check(scope, headers)
        del headers  # a stream would keep them while it is open
        scope[access_rules.CREDENTIALS] = credentials
        if denied is not None:
            await denied(scope, receive, sender.send)
        elif scope["method"] in access_rules.SAFE_METHODS:
            await self._app(scope, receive, sender.send)
        else:
            await self._app(scope, limit_body(receive, scope["path"], self._max_body), sender.send)
        stream: EventStream | None = scope.pop(STREAM, None)
        if stream is not None:
            _shrink(scope)
            await stream.run(scope, receive, send, sender.send, credentials, self._is_still_valid)

    async def _check(
        self, scope: Scope, headers: Mapping[str, str]
    ) -> tuple[Response | None, access_rules.Credentials]:
        """The error response to a request that may not reach the routes, and the credentials of one that may."""
        length = headers.get("content-length", "0")
        has_body = "transfer-encoding" in headers or length.strip() not in ("", "0")
        peer = scope["client"][0] if scope.get("client") else None
        try:
            secure = access_rules.is_https(headers)
            password_set, credentials = await self._authenticator.authenticate(headers, secure=secure)
            is_known = password_set or credentials.token is not None or credentials.login is not None
            same_user = is_known or await _peer_user(scope) == os.geteuid()  # asked only if it matters
            query = scope["query_string"].decode("latin-1")
            facts = access_rules.RequestFacts(scope["method"], scope["path"], headers, has_body, peer, same_user, query)
            denied = access_rules.decide_access(
                facts,
                password_set=password_set,
                password_needed=self._password_needed,
                credentials=credentials,
            )
        except StorageError as error:
            retry = {"Retry-After": str(problem_details.RETRY_AFTER)}
            status = problem_details.status_of(error)
            refusal = error_responses.refusal(scope["path"], status, error.code, str(error), retry)
            return refusal, access_rules.Credentials()
        return self._refusal(facts, length, denied), credentials

    def _refusal(
        self, facts: access_rules.RequestFacts, length: str, denied: access_rules.AccessDenied | None
    ) -> Response | None:
        if denied is None:
            if is_too_large(facts.path, length, self._max_body):
                return error_responses.refusal(
                    facts.path, 413, "too-large", too_large_message(facts.path, self._max_body)
                )
            return None
        opens_page = access_rules.opens_page(facts.method, facts.headers)
        if denied.status == 401 and opens_page:
            here = f"{facts.path}?{facts.query}" if facts.query else facts.path
            return RedirectResponse(f"/login?{urlencode({'next': here})}", 303)
        if opens_page:
            return html_pages.refusal(denied.detail, denied.status)
        challenge = {"WWW-Authenticate": "Bearer"} if denied.status == 401 else None
        return error_responses.refusal(facts.path, denied.status, denied.code, denied.detail, challenge)


class _ResponseSender:
    """Adds the security headers, counts the request and logs one line; never any content."""

    def __init__(self, send: Send, scope: Scope, request_counts: "Counter[tuple[str, int]]", *, secure: bool) -> None:
        self._secure = secure
        self._send = send
        self._scope = scope
        self._request_counts = request_counts
        self._started = time.perf_counter()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", ())}
            missing = [pair for pair in SECURITY_HEADERS if pair[0] not in present] + [HSTS] * self._secure
            message = {**message, "headers": [*message.get("headers", ()), *missing]}
            self._log(message["status"])
        await self._send(message)

    def _log(self, status: int) -> None:
        scope = self._scope
        self._request_counts[(scope["method"], status)] += 1
        if log.isEnabledFor(logging.INFO):
            fields: dict[str, Any] = {
                "method": scope["method"],
                "path": access_rules.loggable_path(scope["path"]),
                "status": status,
                "ms": round((time.perf_counter() - self._started) * 1000, 1),
            }
            log.info("%(method)s %(path)s %(status)d %(ms).1f ms", fields, extra={"fields": fields})


def _shrink(scope: Scope) -> None:
    """Frees memory while the stream is open. A dictionary only shrinks if it is cleared first."""
    needed = {name: scope[name] for name in _STREAM_SCOPE if name in scope}
    scope.clear()
    scope.update(needed)


async def _peer_user(scope: Scope) -> int | None:
    find = (scope.get("extensions") or {}).get(access_rules.PEER_USER)
    return None if find is None else await find()


def _headers(scope: Scope) -> Mapping[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        values.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return {name: ", ".join(texts) for name, texts in values.items()}
