"""Share links: create, list and revoke them, and the page that they open, which needs no login. What a share is:
`engine.shares`."""

import hashlib
import secrets
from collections.abc import AsyncIterator
from functools import partial
from typing import BinaryIO, Final

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.core.errors import InvalidInputError, NotFoundError
from holdfast.core.ids import LOCAL, ShareId
from holdfast.engine import html_export
from holdfast.server import html_pages, security_log
from holdfast.server import parameters as p
from holdfast.server.access_rules import SHARES
from holdfast.server.client_address import request_address
from holdfast.server.context import ApiContext
from holdfast.server.disconnects import run_while_connected
from holdfast.server.downloads import Download
from holdfast.server.routing import Router
from holdfast.server.schemas import shares as s

router = Router("shares", "/api")

_CHUNK: Final = 256 * 1024
_TOKEN_BYTES: Final = 32
_PRIVATE: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}
_PAGE: Final = {
    **_PRIVATE,
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": f"{html_export.POLICY}; frame-ancestors 'none'; "
    "sandbox allow-downloads allow-popups allow-popups-to-escape-sandbox",
}
"""The sandbox gives the page an origin of its own, apart from the app's and its cookies."""


@router.post("/sessions/{sid}/shares", status=201)
async def create_share(
    api: ApiContext, request: Request, sid: p.SessionIdPath, body: s.CreateShareRequest | None = None
) -> s.CreatedShareResponse:
    """Create a link to a read-only snapshot of the chat as it is now. Whoever has the link and can reach the server can
    open it, without a login. Only this response contains it."""
    body = body or s.CreateShareRequest()
    if body.run_id is not None and body.kind != "recording":
        raise InvalidInputError("run_id", "is only for recordings; set kind to recording")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    create = partial(api.engine.shares.create, sid, body.to_request(), _digest(token))
    share = await run_while_connected(request.receive, create)  # nobody else is told the address
    address = request_address(request, api.trusted_proxies)
    security_log.record("chat shared", address=address, share=share.id, session=sid)
    return s.CreatedShareResponse.from_share(share, path=f"{SHARES}{token}", root_path=api.root_path)


@router.get("/shares")
async def list_shares(api: ApiContext, limit: p.Limit = 50, cursor: p.Cursor = None) -> s.ShareListResponse:
    """List the links that work, newest first. Their addresses are not stored."""
    before = p.read_cursor(cursor, tuple[p.Moment, ShareId])
    found = await api.engine.shares.list(LOCAL, limit + 1, before)
    last = found[limit - 1] if len(found) > limit else None
    return s.ShareListResponse(
        items=[s.ShareResponse.from_share(share) for share in found[:limit]],
        next=None if last is None else p.write_cursor(last.created_at, last.id),
    )


@router.delete("/shares/{share_id}", status=204)
async def revoke_share(api: ApiContext, request: Request, share_id: p.IdPath) -> None:
    """Revoke a link: it stops working at once, and its content is erased within the hour."""
    share = await api.engine.shares.revoke(ShareId(share_id))
    address = request_address(request, api.trusted_proxies)
    security_log.record("share revoked", address=address, share=share.id, session=share.session_id)


def shared_page(api: ApiContext) -> Route:
    """The snapshot that a link leads to. Unknown, revoked and expired links are answered alike, and so are those whose
    file is lost."""

    async def open_page(request: Request) -> Response:
        shares, is_head = api.engine.shares, request.method == "HEAD"
        file = await shares.find(_digest(request.path_params["token"]), is_opened=not is_head)
        try:
            content = None if file is None else await shares.open(file)
        except NotFoundError:  # erased meanwhile
            content = None
        if file is None or content is None:
            detail = "The link has expired, was revoked, or is incomplete. Ask whoever sent it for a new one."
            return html_pages.message("Link not available", detail, 404, _PRIVATE)
        headers = {**_PAGE, "Content-Length": str(file.size)}
        if is_head:
            content.close()
            return Response(headers=headers)
        return Download(_read(content, file.size), file.name, headers, inline=True)

    return Route(f"{SHARES}{{token}}", open_page, methods=["GET"])


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


async def _read(content: BinaryIO, size: int) -> AsyncIterator[bytes]:
    with content:
        while chunk := await to_thread.run_sync(content.read, _CHUNK):
            size -= len(chunk)
            yield chunk
    if size > 0:
        raise EOFError(f"{size} bytes are missing")
