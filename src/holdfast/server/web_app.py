"""Serves the web app's files, which `web/` builds into `static/app`.

Browsers cache assets forever, because their names contain a hash of the content, and revalidate the page that refers to
them. So an update appears at the next load, and no page refers to missing assets. What the page may load (its content
security policy): `server.access_middleware`; files, artifacts and shares have their own (`server.routes`).
"""

import hashlib
import re
from pathlib import Path
from typing import Final

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from holdfast.server.html_pages import page

APP: Final = Path(__file__).parent / "static" / "app"
PAGES: Final = (
    "/",
    "/new/{key}",
    "/c/{id}",
    "/runs/{id}",
    "/projects",
    "/projects/{id}",
    "/compare",
    "/activity",
    "/settings",
    "/setup",
)
"""The app's routes; all serve the same page."""
_API_PREFIXES: Final = ("/api/", "/v1/", "/static/")
_NAME: Final = re.compile(r"(assets/)?[A-Za-z0-9_-][A-Za-z0-9._-]*")
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "ttf": "font/ttf",
    "txt": "text/plain; charset=utf-8",
    "webmanifest": "application/manifest+json",
    "woff": "font/woff",
    "woff2": "font/woff2",
}
_NO_ROOT: Final = b'data-root-path=""'
_ROOT: Final = b'data-root-path="%b"'
_ENCODINGS: Final = {"br": ".br", "gzip": ".gz"}
_NOT_BUILT: Final = (
    '<section class="card"><img src="/static/icon.svg" alt="" width="48" height="48"><h1>Holdfast is running</h1>'
    "<p>The web app is not built. Run <code>make install</code>, which needs access to the npm registry once.</p>"
    '<p>Until then use <code>holdfast chat</code> in a terminal, or <a href="/docs">the API</a>.</p></section>'
)


_DIAGRAM_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
    "sandbox allow-scripts",
    "X-Frame-Options": "SAMEORIGIN",
}
"""The frame that renders diagrams also needs inline styles; its sandbox keeps it apart from the app's origin."""
_ASSET_HEADERS: Final = {"Cache-Control": "public, max-age=31536000, immutable", "Access-Control-Allow-Origin": "*"}
"""Assets hold nothing secret, and the sandboxed frame loads its scripts from an origin of its own."""


def routes(root_path: str = "", root: Path = APP) -> list[Route]:
    """`root_path`: the path below which browsers see the server."""

    async def app_page(request: Request) -> Response:
        found = await to_thread.run_sync(_read_page, root, root_path, request.headers.get("accept-encoding", ""))
        if found is None:
            return HTMLResponse(page("Holdfast", _NOT_BUILT, root_path))
        body, headers = found
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers |= {"Cache-Control": "no-cache", "ETag": etag}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers)

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        known = _NAME.fullmatch(name) is not None and name.rpartition(".")[2] in _TYPES
        accepted = request.headers.get("accept-encoding", "")
        found = await to_thread.run_sync(_read, root, name, accepted) if known else None
        if found is None:
            return Response(status_code=404, headers={"Cache-Control": "no-store"})
        body, headers = found
        if name == "diagram.html":
            headers |= _DIAGRAM_HEADERS
        elif name == "service-worker.js":
            headers |= {"Service-Worker-Allowed": f"{root_path}/"}
        return Response(body, headers={**headers, **(_ASSET_HEADERS if "/" in name else {"Cache-Control": "no-cache"})})

    pages = [Route(path, app_page, methods=["GET"]) for path in PAGES]
    return [*pages, Route("/static/app/{name:path}", asset, methods=["GET"])]


async def unknown_page(request: Request, root_path: str = "", root: Path = APP) -> Response | None:
    """The app, which says that there is no such page, for a browser; None for clients of an API."""
    if "text/html" not in request.headers.get("accept", "") or request.url.path.startswith(_API_PREFIXES):
        return None
    found = await to_thread.run_sync(_read_page, root, root_path, request.headers.get("accept-encoding", ""))
    if found is None:
        return None
    body, headers = found
    return Response(body, status_code=404, headers={**headers, "Cache-Control": "no-store"})


def _read_page(root: Path, root_path: str, accepted: str) -> tuple[bytes, dict[str, str]] | None:
    """The page with the root path in its addresses and where its script reads it; then it is not compressed."""
    found = _read(root, "index.html", "" if root_path else accepted)
    if found is None or not root_path:
        return found
    body, headers = found
    prefix = root_path.encode()
    return body.replace(b'="/static/', b'="%b/static/' % prefix).replace(_NO_ROOT, _ROOT % prefix), headers


def _read(root: Path, name: str, accepted: str) -> tuple[bytes, dict[str, str]] | None:
    """The content and its headers; compressed if there is a compressed copy that the client accepts."""
    headers = {"Content-Type": _TYPES[name.rpartition(".")[2]], "Vary": "Accept-Encoding"}
    for encoding, suffix in _ENCODINGS.items():
        compressed = root / (name + suffix)
        if encoding in accepted and compressed.is_file():
            return compressed.read_bytes(), {**headers, "Content-Encoding": encoding}
    plain = root / name
    return (plain.read_bytes(), headers) if plain.is_file() else None
