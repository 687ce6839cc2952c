"""Log in and out, list logins, change the password, and manage API tokens. The rules: `server.authenticator`; how often
a password may be tried: `server.login_throttle`."""

import logging
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from typing import Final

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from holdfast.core.errors import NotAllowedError, NotFoundError
from holdfast.ports.keyring import LOGIN_DAYS
from holdfast.server import authenticator, html_pages, security_log
from holdfast.server.access_rules import CREDENTIALS, Credentials, is_https, opens_page
from holdfast.server.authenticator import BROWSER_COOKIE, COOKIE, SERVER_TOKEN
from holdfast.server.client_address import device_name, network_of, request_address
from holdfast.server.context import ApiContext
from holdfast.server.disconnects import allow_drop, run_while_connected
from holdfast.server.login_links import LINK_TIME
from holdfast.server.parameters import IdPath
from holdfast.server.reauthentication import require_recent_login
from holdfast.server.routing import Router
from holdfast.server.schemas import auth as s
from holdfast.server.schemas.base import shallow_fields

log = logging.getLogger("holdfast.http")
router = Router("auth", "/api")

_USED_LINK: Final = (
    "This login link has expired or was already used. Create a new one with `holdfast login-link` on the server."
)
_BROWSER_DAYS: Final = 365  # How long a browser is recognized as one that has logged in before


async def _check_password(api: ApiContext, request: Request, password: str) -> str:
    """Returns the hash of the password, and raises 401 for a wrong one. After several of these, the next is checked
    after a pause. A client that disconnects gives up its place. While a stranger waits, at the limit of connections
    others may go first: anybody can let many wait, and the login page repeats an attempt that broke off."""
    address, secure = request_address(request, api.trusted_proxies), is_https(request.headers)
    known = _credentials(request).login or api.authenticator.find_browser(request.headers, secure=secure)
    client = known or network_of(address)
    verify = partial(api.authenticator.verify_password, password, client, known=known is not None)
    with allow_drop(request) if known is None else nullcontext():
        verified = await run_while_connected(request.receive, verify)
    if verified is None:
        security_log.record("wrong password", level=logging.WARNING, address=address)
        raise HTTPException(401, "Wrong password.")
    return verified


async def _log_in(
    api: ApiContext,
    request: Request,
    response: Response,
    verified: str | None = None,
    replacing: str | None = None,
) -> Response:
    """`verified`: the hash of the password that was entered. `replacing`: the id of the login that is renewed."""
    device = device_name(request.headers.get("user-agent", ""))
    address, secure = request_address(request, api.trusted_proxies), is_https(request.headers)
    cookies = [(COOKIE, await api.authenticator.log_in(device, address, replacing, verified), LOGIN_DAYS)]
    if api.authenticator.find_browser(request.headers, secure=secure) is None:
        cookies.append((BROWSER_COOKIE, api.authenticator.new_browser(), _BROWSER_DAYS))
    for name, value, days in cookies:
        response.set_cookie(
            api.authenticator.cookie_name(name, secure=secure),
            value,
            max_age=days * 24 * 3600,
            path=api.root_path or "/",
            httponly=True,
            samesite="lax",
            secure=secure,
        )
    security_log.record("logged in", address=address, device=device)
    if not secure and request.headers.get("origin", "").startswith("https:"):
        log.warning(
            "A browser logged in over HTTPS, but the proxy did not send X-Forwarded-Proto: https, so the cookie is not "
            "marked as secure. See docs/how-to/reverse-proxy.md"
        )
    return response


def _log_out(api: ApiContext, request: Request) -> Response:
    secure = is_https(request.headers)
    response = Response(status_code=204, headers={"Clear-Site-Data": '"cache"'})  # attached files are cached
    name, path = api.authenticator.cookie_name(secure=secure), api.root_path or "/"
    response.delete_cookie(name, path, httponly=True, samesite="lax", secure=secure)
    return response


def _credentials(request: Request) -> Credentials:
    found: Credentials = request.scope[CREDENTIALS]
    return found


@router.post("/login", status=204)
async def login(api: ApiContext, request: Request, body: s.LoginRequest) -> Response:
    """Log in with the password; the response sets a cookie. A browser that is logged in gets a new cookie for the same
    login, which counts as recent."""
    if not api.authenticator.password_set:
        return Response(status_code=204)
    verified = await _check_password(api, request, body.password)
    return await _log_in(api, request, Response(status_code=204), verified, _credentials(request).login)


def open_link(api: ApiContext) -> Route:
    """Logs the browser in and leads to the page. The link is one of `POST /api/login-links`, or the one that the server
    prints where the system does not tell which account connects."""

    async def open_page(request: Request) -> Response:
        if request.method == "GET" and api.authenticator.accepts_link(request.query_params.get("token", "")):
            return await _log_in(api, request, RedirectResponse("/", 303))
        if request.method == "GET" and _credentials(request).login is not None:
            return RedirectResponse("/", 303)  # the link was opened twice, or its page reloaded
        if not opens_page(request.method, request.headers):
            raise HTTPException(403, _USED_LINK)
        if api.authenticator.password_set:
            return RedirectResponse("/login?used_link", 303)
        return html_pages.refusal(_USED_LINK, 403)

    return Route("/open", open_page, methods=["GET"])


@router.post("/login-links", status=201)
async def create_login_link(api: ApiContext, request: Request) -> s.LoginLinkResponse:
    """Create a link that logs a browser in once. Only for commands on the server's machine."""
    if _credentials(request).token != SERVER_TOKEN:
        raise HTTPException(403, "Only `holdfast login-link` on the server's machine can create a login link.")
    security_log.record("login link created", address=request_address(request, api.trusted_proxies))
    token = api.authenticator.new_login_link()
    return s.LoginLinkResponse(path=f"/open?token={token}", root_path=api.root_path, expires_in=LINK_TIME)


@router.post("/password", status=204)
async def change_password(api: ApiContext, request: Request, body: s.ChangePasswordRequest) -> Response:
    """Set or change the password; changing needs the current one. This ends every login and token; the caller gets a
    new login."""
    verified = None
    if api.authenticator.password_set:
        verified = await _check_password(api, request, body.current or "")
    changed = await api.authenticator.change_password(body.new, verified)
    security_log.record("password changed", address=request_address(request, api.trusted_proxies))
    return await _log_in(api, request, Response(status_code=204), changed)


@router.post("/logout", status=204)
async def logout(api: ApiContext, request: Request) -> Response:
    """Log out: the login ends, and the response deletes the cookie."""
    login = _credentials(request).login
    if login is not None:
        await to_thread.run_sync(authenticator.end_logins, api.authenticator.keys, login)
        security_log.record("logged out", address=request_address(request, api.trusted_proxies), login=login)
    return _log_out(api, request)


@router.get("/logins")
async def list_logins(api: ApiContext, request: Request) -> s.LoginListResponse:
    """List the browsers that are logged in, the most recently used first."""
    own = _credentials(request).login
    items = [
        s.LoginResponse.model_validate({**shallow_fields(login), "current": login.id == own})
        for login in api.authenticator.logins()
    ]
    return s.LoginListResponse(items=items, next=None)


@router.delete("/logins", status=204)
async def end_all_logins(api: ApiContext, request: Request) -> Response:
    """Log out all browsers, this one included. Tokens stay valid."""
    await to_thread.run_sync(authenticator.end_logins, api.authenticator.keys)
    api.authenticator.end_login_links()
    security_log.record("logged out everywhere", address=request_address(request, api.trusted_proxies))
    return _log_out(api, request)


@router.delete("/logins/{lid}", status=204)
async def end_login(api: ApiContext, request: Request, lid: IdPath) -> None:
    """Log out one browser. Its open streams end within seconds."""
    if not await to_thread.run_sync(authenticator.end_logins, api.authenticator.keys, lid):
        raise NotFoundError("login", lid)
    security_log.record("logged out", address=request_address(request, api.trusted_proxies), login=lid)


@router.get("/tokens")
async def list_tokens(api: ApiContext) -> s.TokenListResponse:
    """List the API tokens, without their secrets."""
    items = [s.TokenResponse.model_validate(token) for token in api.authenticator.keys.read().tokens]
    return s.TokenListResponse(items=items, next=None)


@router.post("/tokens", status=201)
async def create_token(api: ApiContext, request: Request, body: s.CreateTokenRequest) -> s.CreatedTokenResponse:
    """Create an API token for a program. Only this response contains its secret. Needs a recent login."""
    if not api.authenticator.password_set:
        raise NotAllowedError("create a token", "this server has no password; set one first")
    require_recent_login(request, "create a token")
    keys, now = api.authenticator.keys, api.authenticator.clock.now()
    login = _credentials(request).login
    token, secret = await to_thread.run_sync(authenticator.issue_token, keys, body.name, now, login)
    security_log.record(
        "token created", address=request_address(request, api.trusted_proxies), token=token.id, name=token.name
    )
    return s.CreatedTokenResponse.model_validate({**asdict(token), "token": secret})


@router.delete("/tokens/{tid}", status=204)
async def revoke_token(api: ApiContext, request: Request, tid: IdPath) -> None:
    if not await to_thread.run_sync(authenticator.revoke_token, api.authenticator.keys, tid):
        raise NotFoundError("token", tid)
    security_log.record("token revoked", address=request_address(request, api.trusted_proxies), token=tid)
