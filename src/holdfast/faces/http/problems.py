"""Errors as problem JSON. One table says which status an error has; nothing else decides it."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from holdfast.core import errors as e

log = logging.getLogger("holdfast.http")

STATUS: Final[Mapping[type[e.HoldfastError], int]] = {
    e.NotFound: 404,
    e.Busy: 409,
    e.NotAllowed: 409,
    e.AlreadyDecided: 409,
    e.CursorAhead: 409,
    e.IllegalTransition: 409,
    e.JournalPruned: 410,
    e.VersionMismatch: 412,
    e.Invalid: 422,
    e.KeyReused: 422,
    e.BrokenSequence: 503,
    e.Draining: 503,
    e.StorageFull: 507,
    e.StorageError: 503,
    e.Refused: 503,
    e.HoldfastError: 500,
}
"""An error that is not here has the status of its nearest ancestor that is."""

TITLES: Final[Mapping[int, str]] = {
    400: "The request cannot be understood",
    401: "Please log in",
    403: "Not allowed from there",
    404: "Not found",
    405: "This call does not exist here",
    406: "Not to be had in that form",
    408: "The request did not arrive in time",
    409: "That cannot be done now",
    410: "No longer there",
    411: "The length is missing",
    412: "It has changed meanwhile",
    413: "Too large",
    415: "This type is not taken",
    422: "Something in the request is wrong",
    429: "Too many attempts",
    431: "The header is too large",
    500: "Something went wrong here",
    503: "Not available just now",
    507: "The disk is full",
}
RETRY_AFTER: Final = 2
"""Seconds after which a client whose call met unavailable storage should come back."""


def status_of(error: e.HoldfastError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> JSONResponse:
    body = {"type": code, "title": TITLES.get(status, "Something went wrong"), "status": status, "detail": detail}
    return JSONResponse(
        {**body, **more},
        status,
        media_type="application/problem+json",
        headers=None if headers is None else dict(headers),
    )


def of_error(error: e.HoldfastError) -> JSONResponse:
    status = status_of(error)
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else None
    return problem(status, error.code, str(error), headers, **_fields(error))


def _fields(error: e.HoldfastError) -> dict[str, Any]:
    """What a program may want to know beyond the sentence."""
    match error:
        case e.Invalid(field):
            return {"field": field}
        case e.Busy(session, run):
            return {"session_id": session, "run_id": run, "active_run": run}
        case e.KeyReused(_, run):
            return {"run_id": run}
        case e.AlreadyDecided(approval, decision):
            return {"approval_id": approval, "decision": decision}
        case e.CursorAhead(run, _, last):
            return {"run_id": run, "last_seq": last}
        case e.VersionMismatch(_, found):
            return {"version": found}
        case _:
            return {}


def of_validation(problems: Sequence[Any]) -> JSONResponse:
    """Every wrong field with its place; the sentence names the first."""
    found = [{"field": _place(item["loc"]), "problem": str(item["msg"])} for item in problems[:20]]
    first = found[0] if found else {"field": "body", "problem": "is wrong"}
    return problem(422, "invalid", f"{first['field']}: {first['problem']}", field=first["field"], errors=found)


def _place(loc: Sequence[Any]) -> str:
    """`body.input.0.text`, or the bare name of a parameter."""
    names = [str(item) for item in loc]
    if len(names) > 1:
        names = names[1:]
    return ".".join(names) or "body"


_HTTP_CODES: Final = {
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    415: "unsupported-type",
    429: "too-many-attempts",
}


def install(app: FastAPI) -> None:
    async def holdfast_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, e.HoldfastError)
        if status_of(error) >= 500:
            log.warning("a call failed: %s", error.code)
        return of_error(error)

    async def validation(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return of_validation(error.errors())

    async def http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        detail = str(error.detail)
        code = _HTTP_CODES.get(error.status_code, "bad-request")
        return problem(error.status_code, code, detail, error.headers)

    async def bug(_: Request, error: Exception) -> Response:
        return problem(500, "bug", "The server met something it did not expect. The log has the details.")

    app.add_exception_handler(e.HoldfastError, holdfast_error)
    app.add_exception_handler(RequestValidationError, validation)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, bug)
