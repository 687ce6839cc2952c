"""Error responses as problem details (RFC 9457). The table `STATUS` decides the status of every HoldfastError; `type`
is the error's `code`, which its class in `core.errors` defines, or one of `_HTTP_CODES` for errors of HTTP itself."""

import math
from collections.abc import Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from holdfast.core import errors as e
from holdfast.core.validation_text import validation_text
from holdfast.ports.agent import AgentError
from holdfast.server.routing import RequestValidationError
from holdfast.server.validation_errors import path_in_body

STATUS: Final[Mapping[type[e.HoldfastError], int]] = {
    e.ReauthenticationRequiredError: 403,
    e.NotFoundError: 404,
    e.PathNotFoundError: 404,
    e.PathRefusedError: 409,
    e.WorkspaceUnavailableError: 409,
    e.WorkspaceTimeoutError: 504,
    e.SessionBusyError: 409,
    e.NotAllowedError: 409,
    e.KeyCancelledError: 409,
    e.AlreadyDecidedError: 409,
    e.CursorAheadError: 409,
    e.IllegalTransitionError: 409,
    e.JournalPrunedError: 410,
    e.PathExistsError: 409,
    e.VersionMismatchError: 412,
    e.FileConflictError: 412,
    e.ChangesConflictError: 412,
    e.InvalidInputError: 422,
    e.QuotaExceededError: 429,
    e.BudgetReachedError: 429,
    e.KeyReusedError: 422,
    e.BrokenSequenceError: 503,
    e.DrainingError: 503,
    e.StorageFullError: 507,
    e.StorageError: 503,
    e.AppendRefusedError: 503,
    e.HoldfastError: 500,
}
"""An error that is not listed has the status of its nearest listed ancestor."""

TITLES: Final[Mapping[int, str]] = {
    400: "Bad request",
    401: "Login required",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timeout",
    409: "Conflict",
    410: "No longer available",
    412: "Changed in the meantime",
    413: "Too large",
    415: "Unsupported media type",
    416: "Range not satisfiable",
    422: "Invalid request",
    429: "Too many requests",
    431: "Request headers too large",
    500: "Internal server error",
    502: "Model or tool failed",
    503: "Temporarily unavailable",
    504: "Timed out",
    507: "Storage full",
}
RETRY_AFTER: Final = 2  # Seconds after which a client should retry when storage is unavailable


def status_of(error: e.HoldfastError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> JSONResponse:
    body = {"type": code, "title": TITLES.get(status, "Error"), "status": status, "detail": detail}
    return JSONResponse({**body, **more}, status, headers, media_type="application/problem+json")


def retry_headers(error: e.HoldfastError) -> dict[str, str] | None:
    """When a client should repeat a refused request. Clients of providers repeat a 429 unless they are told not to."""
    if isinstance(error, e.BudgetReachedError):
        return {"Retry-After": str(math.ceil(error.retry_after)), "X-Should-Retry": "false"}
    return {"Retry-After": str(RETRY_AFTER)} if status_of(error) == 503 else None


def _fields(error: e.HoldfastError) -> dict[str, Any]:
    """Further fields, for programs."""
    match error:
        case e.InvalidInputError(field):
            return {"field": field}
        case e.SessionBusyError(session, run):
            return {"session_id": session, "run_id": run, "active_run": run}
        case e.KeyReusedError(_, run):
            return {"run_id": run}
        case e.AlreadyDecidedError(approval, decision):
            return {"approval_id": approval, "decision": decision}
        case e.CursorAheadError(run, _, last):
            return {"run_id": run, "last_seq": last}
        case e.VersionMismatchError(_, found):
            return {"version": found}
        case e.FileConflictError(_, etag, text):
            return {"etag": etag, "text": text}
        case e.ChangesConflictError(paths):
            return {"paths": list(paths)}
        case e.BudgetReachedError(_, _, resets_at):
            return {"resets_at": resets_at}
        case _:
            return {}


_HTTP_CODES: Final = {
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "timeout",
    413: "too-large",
    415: "unsupported-type",
    416: "range-not-satisfiable",
    504: "timeout",
}

_NO_CALL: Final = {
    "Not Found": "There is no such address. /docs lists all calls.",
    "Method Not Allowed": "This address does not accept this method. /docs lists all calls.",
}
"""What the router's own errors mean."""


def from_exception(error: Exception) -> JSONResponse:
    match error:
        case e.HoldfastError():
            return problem(status_of(error), error.code, str(error), retry_headers(error), **_fields(error))
        case AgentError():  # a model or a tool that a call needs; what fails in a run is an event of the run
            return problem(502, "upstream-failed", error.message)
        case RequestValidationError():
            return _validation_problem(error)
        case HTTPException():
            code = _HTTP_CODES.get(error.status_code, "bad-request")
            detail = _NO_CALL.get(str(error.detail), str(error.detail))
            return problem(error.status_code, code, detail, error.headers)
        case _:
            return problem(500, "bug", "An unexpected error occurred. The server's log has the details.")


def _validation_problem(error: RequestValidationError) -> JSONResponse:
    """Lists every invalid field; the detail names the first."""
    found = []
    for item in error.errors[:20]:
        source, *path = item["loc"]  # the name of a parameter, or `input.0.text` of the body
        if source == "body" and error.body is not None:
            path = path_in_body(item, path, error.body)
        found.append({"field": ".".join(map(str, path)) or str(source), "problem": validation_text(item)})
    first = found[0]
    return problem(422, "invalid", f"{first['field']}: {first['problem']}", field=first["field"], errors=found)
