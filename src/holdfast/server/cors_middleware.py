"""Lets pages of the origins in `cors_origins` of the configuration call the APIs below `/v1`. Such a request never
counts as one of the person's own page: its cookie and the account that it comes from are dropped, so it needs a token,
also without a password."""

from collections.abc import Collection
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.server import openai
from holdfast.server.access_rules import PEER_USER

_BROWSER_HEADERS: Final = frozenset({b"origin", b"cookie", b"sec-fetch-site"})
"""What the access rules judge the pages of other sites by; the origin of an allowed one is judged here."""
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, HEAD, POST, DELETE"),
    (b"access-control-allow-headers", b"*, authorization"),
    (b"access-control-max-age", b"600"),
    (b"content-length", b"0"),
)
_EXPOSED: Final = b"holdfast-run, holdfast-session, holdfast-ignored, x-request-id, retry-after"


class CorsMiddleware:
    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = self._allowed_origin(scope)
        if origin is None:
            await self._app(scope, receive, send)
            return
        allow = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
        if scope["method"] == "OPTIONS":
            await send({"type": "http.response.start", "status": 204, "headers": [*allow, *_PREFLIGHT]})
            await send({"type": "http.response.body", "body": b""})
            return

        async def send_allowed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *allow, (b"access-control-expose-headers", _EXPOSED)]
                message = {**message, "headers": headers}
            await send(message)

        kept = [pair for pair in scope["headers"] if pair[0] not in _BROWSER_HEADERS]
        extensions = {name: found for name, found in (scope.get("extensions") or {}).items() if name != PEER_USER}
        await self._app({**scope, "headers": kept, "extensions": extensions}, receive, send_allowed)

    def _allowed_origin(self, scope: Scope) -> bytes | None:
        if scope["type"] != "http" or not scope["path"].startswith(openai.PREFIX):
            return None
        found = [value for name, value in scope["headers"] if name == b"origin"]
        return found[0] if len(found) == 1 and found[0] in self._origins else None
