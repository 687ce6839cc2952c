"""Log in and out, change the password, and manage API tokens."""

from dataclasses import asdict

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from holdfast.core.errors import NotAllowedError, NotFoundError
from holdfast.server import authenticator
from holdfast.server.authenticator import COOKIE, COOKIE_DAYS
from holdfast.server.context import ApiContext
from holdfast.server.parameters import IdPath
from holdfast.server.routing import Router
from holdfast.server.schemas import auth as s

router = Router("auth", "/api")


async def _check_password(api: ApiContext, request: Request, password: str) -> None:
    """Raises 401 for a wrong password, and 429 after too many attempts."""
    client, limiter = request.client.host if request.client else "", api.login_limiter
    wait = limiter.wait(client, anyio.current_time())
    if wait > 0:
        seconds = str(int(wait) + 1)
        raise HTTPException(429, f"Too many attempts. Try again in {seconds} s.", {"Retry-After": seconds})
    limiter.record_attempt(client, anyio.current_time())  # before the slow check, so that concurrent attempts count too
    if not await api.authenticator.is_password(password):
        raise HTTPException(401, "Wrong password.")
    limiter.reset(client)


def _log_in(api: ApiContext, request: Request, response: Response) -> Response:
    response.set_cookie(
        COOKIE,
        api.authenticator.cookie(),
        max_age=COOKIE_DAYS * 24 * 3600,
        httponly=True,
        samesite="lax",
        secure=_is_https(request),
    )
    return response


@router.post("/login", status=204)
async def login(api: ApiContext, request: Request, body: s.LoginRequest) -> Response:
    """Log in with the password; the response sets a cookie."""
    if not api.authenticator.password_set:
        return Response(status_code=204)
    await _check_password(api, request, body.password)
    return _log_in(api, request, Response(status_code=204))


def open_link(api: ApiContext) -> Route:
    """The link that the server prints where the system does not tell which account connects. It carries the server's
    token, logs the browser in and leads to the page."""

    async def open_page(request: Request) -> Response:
        given = {"authorization": f"Bearer {request.query_params.get('token', '')}"}
        if not api.authenticator.check(given).token:
            raise HTTPException(403, "This link is no longer valid. Open the one that the server printed at its start.")
        return _log_in(api, request, RedirectResponse("/", 303))

    return Route("/open", open_page, methods=["GET"])


@router.post("/password", status=204)
async def change_password(api: ApiContext, request: Request, body: s.ChangePasswordRequest) -> Response:
    """Set or change the password; changing needs the current one. This ends every login except the caller's."""
    if api.authenticator.password_set:
        await _check_password(api, request, body.current or "")
    await api.authenticator.change_password(body.new)
    return _log_in(api, request, Response(status_code=204))


@router.post("/logout", status=204)
async def logout(request: Request) -> Response:
    """Log out: the response deletes the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=_is_https(request))
    return response


@router.get("/tokens")
async def list_tokens(api: ApiContext) -> s.TokenListResponse:
    """List the API tokens, without their secrets."""
    items = [s.TokenResponse.model_validate(token) for token in api.authenticator.keys.read().tokens]
    return s.TokenListResponse(items=items, next=None)


@router.post("/tokens", status=201)
async def create_token(api: ApiContext, body: s.CreateTokenRequest) -> s.CreatedTokenResponse:
    """Create an API token for a program. Only this response contains its secret."""
    if not api.authenticator.password_set:
        raise NotAllowedError("create a token", "this server has no password; set one first")
    keys, now = api.authenticator.keys, api.authenticator.clock.now()
    token, secret = await to_thread.run_sync(authenticator.issue_token, keys, body.name, now)
    return s.CreatedTokenResponse.model_validate({**asdict(token), "token": secret})


@router.delete("/tokens/{tid}", status=204)
async def revoke_token(api: ApiContext, tid: IdPath) -> None:
    if not await to_thread.run_sync(authenticator.revoke_token, api.authenticator.keys, tid):
        raise NotFoundError("token", tid)


def _is_https(request: Request) -> bool:
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
