"""Errors in OpenAI's shape. Statuses are those of the native face's table, but for wrong requests: these are 400."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from holdfast.core import errors as e
from holdfast.core.events import Failure
from holdfast.core.values import dataclass
from holdfast.faces.http import problems

_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}


@dataclass(eq=False)
class Wrong(e.HoldfastError):
    """A parameter that is wrong, or that cannot be honoured; `param` is its name, with its place."""

    code: ClassVar[str] = "invalid_value"
    param: str
    problem: str
    kind: str = "invalid_value"

    def __str__(self) -> str:
        return self.problem


def unsupported(param: str, why: str) -> Wrong:
    return Wrong(param, f"Unsupported parameter: '{param}'. {why}", "unsupported_parameter")


def body(message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def answer(
    status: int,
    message: str,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return JSONResponse(body(message, kind, param, code), status, None if headers is None else dict(headers))


def refusal(status: int, code: str, detail: str, headers: Mapping[str, str] | None) -> Response:
    """What the guard refuses."""
    return answer(status, detail, "invalid_api_key" if status == 401 else code.replace("-", "_"), None, headers)


def of(error: Exception) -> Response:
    match error:
        case Wrong(param, problem, kind):
            return answer(400, problem, kind, param)
        case e.NotFound("model", name):
            said = f"The model {name!r} does not exist here. GET /v1/models has those that do."
            return answer(404, said, "model_not_found", "model")
        case e.Invalid(field, problem):
            return answer(400, f"{field}: {problem}", "invalid_value", field)
        case e.HoldfastError():
            status = {422: 400, 412: 400}.get(problems.status_of(error), problems.status_of(error))
            headers = {"Retry-After": str(problems.RETRY_AFTER)} if status == 503 else None
            return answer(status, str(error), error.code.replace("-", "_"), None, headers)
        case RequestValidationError():
            return _validation(error.errors(), error.body)
        case HTTPException():
            return answer(error.status_code, str(error.detail), None, None, error.headers)
        case _:
            return answer(500, "The server met something it did not expect. The log has the details.", "bug")


def _validation(found: Sequence[Any], given: Any) -> Response:
    """The first wrong field: of a choice between types, where it got furthest."""
    first = max(found, key=lambda item: len(_place(item["loc"], given)), default=None)
    if first is None:
        return answer(400, "The request cannot be understood.")
    if first["type"] == "json_invalid":
        return answer(400, f"The body is no JSON: {first['msg']}.")
    place = _place(first["loc"], given)
    if first["type"] == "extra_forbidden":
        return answer(400, f"Unknown parameter: '{place}'.", "unknown_parameter", place)
    if first["type"] == "missing":
        place = ".".join(str(step) for step in first["loc"][1:]) or place
        return answer(400, f"Missing required parameter: '{place}'.", "missing_required_parameter", place)
    return answer(400, f"Invalid type or value for '{place}': {first['msg']}.", "invalid_type", place)


def _place(loc: Sequence[Any], given: Any) -> str:
    """`messages[0].content`. Names of types, which a choice between them puts in between, are no place in the body."""
    if not loc or loc[0] != "body":
        return str(loc[-1]) if loc else ""
    text, at = "", given
    for step in loc[1:]:
        if isinstance(at, dict) and step in at:
            text, at = f"{text}.{step}" if text else str(step), at[step]
        elif isinstance(at, list) and isinstance(step, int) and step < len(at):
            text, at = f"{text}[{step}]", at[step]
        else:
            break
    return text or str(loc[1] if len(loc) > 1 else loc[0])


_STATUSES: Final[Mapping[str, tuple[int, str]]] = {
    "rate-limit": (429, "rate_limit_exceeded"),
    "context-length": (400, "context_length_exceeded"),
    "bad-request": (400, "invalid_prompt"),
    "refused": (400, "content_policy_violation"),
    "timeout": (504, "upstream_timeout"),
    "unavailable": (503, "upstream_unavailable"),
    "auth": (502, "upstream_auth"),
    "protocol": (502, "upstream_protocol"),
}
"""By the code of a run's failure. `auth` is no 401: the key that was refused is the server's, not the client's."""


def of_failure(failure: Failure) -> tuple[int, dict[str, Any]]:
    """A run that failed: the status where nothing was sent yet, and the error."""
    status, code = _STATUSES.get(failure.code, (500, failure.code.replace("-", "_")))
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return status, body(failure.message, kind, None, code)
