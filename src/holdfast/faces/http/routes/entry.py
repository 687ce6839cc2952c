"""Coming in: log in, log out, tokens."""

from collections.abc import Callable

from anyio import to_thread
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import NotFound
from holdfast.faces.http import answers
from holdfast.faces.http import descriptions as d
from holdfast.faces.http.api import Api, Rid
from holdfast.faces.http.attempts import Attempts
from holdfast.faces.http.gate import COOKIE, COOKIE_DAYS
from holdfast.faces.http.requests import Login, NewPassword, NewToken
from holdfast.faces.http.routing import Router


def routes(api: Api, monotonic: Callable[[], float]) -> Router:
    router = Router("access", "/api")
    attempts = Attempts()

    async def check(request: Request, password: str) -> None:
        """Whoever tries too often waits."""
        who = request.client.host if request.client else ""
        wait = attempts.wait(who, monotonic())
        if wait > 0:
            seconds = str(int(wait) + 1)
            raise HTTPException(429, f"Too many attempts. Try again in {seconds} s.", {"Retry-After": seconds})
        attempts.note(who, monotonic())  # before the slow check: many at once count too
        if not await api.gate.is_password(password):
            raise HTTPException(401, "That is not the password.")
        attempts.forget(who)

    def let_in(request: Request) -> Response:
        response = Response(status_code=204)
        response.set_cookie(
            COOKIE,
            api.gate.cookie(),
            max_age=COOKIE_DAYS * 24 * 3600,
            httponly=True,
            samesite="lax",
            secure=_is_https(request),
        )
        return response

    @router.post("/login", status_code=204)
    async def login(request: Request, body: Login) -> Response:
        """Show the password, get a cookie."""
        if not api.gate.password_set:
            return Response(status_code=204)  # nobody needs one
        await check(request, body.password)
        return let_in(request)

    @router.post("/password", status_code=204)
    async def change_password(request: Request, body: NewPassword) -> Response:
        """Set one, or another one, which needs the one before. Every login ends but that of the caller."""
        if api.gate.password_set:
            await check(request, body.current or "")
        await api.gate.change_password(body.new)
        return let_in(request)

    @router.post("/logout", status_code=204)
    async def logout(request: Request) -> Response:
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=_is_https(request))
        return response

    @router.get("/tokens", response_model=d.Tokens)
    async def list_tokens() -> Response:
        """Names and dates; what a token is, nobody can say again."""
        items = [{"id": t.id, "name": t.name, "created_at": answers.time(t.created_at)} for t in api.gate.tokens()]
        return JSONResponse({"items": items, "next": None})

    @router.post("/tokens", status_code=201, response_model=d.NewTokenOut)
    async def new_token(body: NewToken) -> Response:
        """A key for a program. It is in this answer and nowhere else."""
        token, secret = await to_thread.run_sync(api.gate.issue, body.name)
        created_at = answers.time(token.created_at)
        return JSONResponse({"id": token.id, "name": token.name, "created_at": created_at, "token": secret}, 201)

    @router.delete("/tokens/{tid}", status_code=204)
    async def revoke_token(tid: Rid) -> Response:
        if not await to_thread.run_sync(api.gate.revoke, tid):
            raise NotFound("token", tid)
        return Response(status_code=204)

    return router


def _is_https(request: Request) -> bool:
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
