"""The web app's files. They are built into `static/app` (see `web/`); without them the server says how to get them.

Names of assets carry a hash of their content and are kept for ever; the page that names them is asked for each time, so
an update is seen at the next load and never leaves a page whose parts are gone.
"""

import hashlib
import re
from pathlib import Path
from typing import Final

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from holdfast.faces.http.pages import page

APP: Final = Path(__file__).parent / "static" / "app"
ROUTES: Final = ("/", "/c/{id}", "/runs/{id}", "/compare", "/activity", "/settings")
"""Places inside the app: each is the same page."""
_NAME: Final = re.compile(r"(assets/)?[A-Za-z0-9_-][A-Za-z0-9._-]*")
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "ttf": "font/ttf",
    "webmanifest": "application/manifest+json",
    "woff": "font/woff",
    "woff2": "font/woff2",
}
_PACKED: Final = {"br": ".br", "gzip": ".gz"}
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_UNBUILT: Final = (
    '<section class="card"><img src="/static/icon.svg" alt="" width="48" height="48"><h1>Holdfast is running</h1>'
    "<p>The web app has not been built here. <code>make install</code> builds it; it needs to reach the npm registry "
    'once.</p><p>Until then: <code>holdfast chat</code> in a terminal, or <a href="/docs">the API</a>.</p></section>'
)


_DIAGRAM: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
}
"""The frame in which diagrams are drawn: styles may be written there, and nothing else than in the app."""


def install(app: FastAPI, root: Path = APP) -> None:
    async def shell(request: Request) -> Response:
        found = await to_thread.run_sync(_read, root, "index.html", request.headers.get("accept-encoding", ""))
        if found is None:
            return HTMLResponse(page("Holdfast", _UNBUILT))
        body, headers = found
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers |= {"Cache-Control": "no-cache", "ETag": etag}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers)

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        known = _NAME.fullmatch(name) is not None and name.rpartition(".")[2] in _TYPES
        found = None
        if known:
            found = await to_thread.run_sync(_read, root, name, request.headers.get("accept-encoding", ""))
        if found is None:
            return Response(status_code=404, headers={"Cache-Control": "no-store"})
        body, headers = found
        if name == "diagram.html":
            headers |= _DIAGRAM
        return Response(body, headers={**headers, "Cache-Control": _FOR_EVER if "/" in name else "no-cache"})

    for path in ROUTES:
        app.router.routes.append(Route(path, shell, methods=["GET"], include_in_schema=False))
    app.router.routes.append(Route("/static/app/{name:path}", asset, methods=["GET"], include_in_schema=False))


def _read(root: Path, name: str, accepted: str) -> tuple[bytes, dict[str, str]] | None:
    """The content, packed if there is a packed copy that the client takes."""
    headers = {"Content-Type": _TYPES[name.rpartition(".")[2]], "Vary": "Accept-Encoding"}
    for coding, suffix in _PACKED.items():
        packed = root / (name + suffix)
        if coding in accepted and packed.is_file():
            return packed.read_bytes(), {**headers, "Content-Encoding": coding}
    plain = root / name
    return (plain.read_bytes(), headers) if plain.is_file() else None
