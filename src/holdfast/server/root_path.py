"""Serves the app below a path of its host, such as `/holdfast`, whether or not the reverse proxy in front removes the
path. The path is `root_path` of the configuration."""

from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.core.errors import ConfigError


class RootPathMiddleware:
    """Removes the root path from requests that have it, and adds it to `Location` headers. Requests without it are
    served too: a proxy may have removed it, and health checks and commands connect directly. No page of the app starts
    with the root path, so both kinds can be told apart."""

    def __init__(self, app: ASGIApp, root_path: str, first_segments: Collection[str]) -> None:
        """`first_segments`: those of the app's own paths, such as `api`. Raises ConfigError for a root path that starts
        with one of them."""
        first = root_path.split("/")[1]
        if first in first_segments:
            raise ConfigError("root_path", f"/{first} is a path of Holdfast itself; choose another, such as /holdfast")
        self._app = app
        self._root = root_path
        self._raw_root = root_path.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_located(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [self._locate(*pair) for pair in message.get("headers", ())]}
            await send(message)

        path: str = scope["path"]
        if path == self._root or path.startswith(f"{self._root}/"):
            # In place: a running stream frees the parts of the scope that it does not need.
            scope["path"] = path[len(self._root) :] or "/"
            raw: bytes | None = scope.get("raw_path")
            if raw is not None:
                scope["raw_path"] = raw.removeprefix(self._raw_root) or b"/"
        await self._app(scope, receive, send_located)

    def _locate(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        is_own_path = name.lower() == b"location" and value.startswith(b"/") and not value.startswith(b"//")
        return name, self._raw_root + value if is_own_path else value
