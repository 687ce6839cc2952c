"""Errors in OpenAI's shape, `{"error": {message, type, param, code}}`. They have the statuses of the native API, except
that an invalid request is a 400. A run that fails before its first output has such a status; later its stream says so
(`streaming`)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from holdfast.core import errors as e
from holdfast.core.events import Failure
from holdfast.core.validation_text import validation_text
from holdfast.ports.model import UNSUPPORTED
from holdfast.server import problem_details
from holdfast.server.routing import RequestValidationError
from holdfast.server.validation_errors import path_in_body

_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}


_QUOTA: Final = "insufficient_quota"
_AVAILABLE: Final = (
    "Below /v1 there are models, chat/completions, responses, conversations, messages and embeddings; /docs describes "
    "them. The base URL of a client ends in /v1."
)


class ParameterError(e.HoldfastError):
    """A parameter is invalid or cannot be honored; `param` is its path in the body, such as `input[0].role`."""

    code: ClassVar[str] = "invalid_value"
    template: ClassVar[str] = "{problem}"
    param: str
    problem: str
    error_code: str = "invalid_value"


def unsupported(param: str, reason: str) -> ParameterError:
    return ParameterError(param, f"Unsupported parameter: '{param}'. {reason}", "unsupported_parameter")


def missing(param: str) -> ParameterError:
    return ParameterError(param, f"Missing required parameter: '{param}'.", "missing_required_parameter")


def error_body(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def error_response(
    status: int,
    message: str,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    return JSONResponse(error_body(status, message, code, param), status, headers)


def refusal(status: int, code: str, detail: str, headers: Mapping[str, str] | None) -> Response:
    """The response to a request that the access checks refuse."""
    return error_response(status, detail, "invalid_api_key" if status == 401 else code.replace("-", "_"), None, headers)


def response_of(error: Exception) -> Response:
    match error:
        case ParameterError(param, problem, code):
            return error_response(400, problem, code, param)
        case e.NotFoundError("model", name):
            message = f"The model {name!r} does not exist. GET /v1/models lists the available models."
            return error_response(404, message, "model_not_found", "model")
        case e.InvalidInputError(field, problem):
            return error_response(400, f"{field}: {problem}", "invalid_value", field)
        case e.BudgetReachedError():
            # Under OpenAI's own code of a used-up budget, which clients show instead of repeating the request.
            body = error_body(429, str(error), _QUOTA)
            body["error"]["type"] = _QUOTA
            return JSONResponse(body, 429, problem_details.retry_headers(error))
        case e.HoldfastError():
            status = {422: 400, 412: 400}.get(problem_details.status_of(error), problem_details.status_of(error))
            headers = problem_details.retry_headers(error)
            return error_response(status, str(error), error.code.replace("-", "_"), None, headers)
        case RequestValidationError():
            return _validation_response(error.errors, error.body)
        case HTTPException(status_code=404):
            return error_response(404, f"There is no such call. {_AVAILABLE}", "unknown_url")
        case HTTPException(status_code=405):
            message = f"This address does not accept the method. {_AVAILABLE}"
            return error_response(405, message, "method_not_allowed", None, error.headers)
        case HTTPException():
            return error_response(error.status_code, str(error.detail), None, None, error.headers)
        case _:
            return error_response(500, "Unexpected server error. The server log has the details.", "bug")


def _validation_response(found: Sequence[Any], body: Any) -> Response:
    """Reports one error. Where several types are accepted, each has errors: the deepest in the body is of the type that
    the client meant. An unknown type goes before the fields that only other types have."""
    error = max(found, key=lambda item: (len(_path(item, body)), item["type"] == "literal_error"))
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in _path(error, body))
    param = "".join(steps).removeprefix(".") or "body"  # such as `messages[0].content`
    match error["type"]:
        case "json_invalid":
            return error_response(400, f"The request body is not valid JSON: {error['ctx']['error']}.")
        case "extra_forbidden":
            return error_response(400, f"Unknown parameter: '{param}'.", "unknown_parameter", param)
        case "missing" | "union_tag_not_found":
            return response_of(missing(param))
        case "literal_error" | "union_tag_invalid":
            expected = error["ctx"].get("expected") or error["ctx"]["expected_tags"]
            message = f"Invalid value for '{param}'. Expected one of: {expected}."
            return error_response(400, message, "invalid_value", param)
        case kind:
            code = "invalid_type" if kind.endswith(("_type", "_unicode")) else "invalid_value"
            return error_response(400, f"Invalid value for '{param}': {validation_text(error)}.", code, param)


def _path(error: Mapping[str, Any], body: Any) -> list[str | int]:
    """The path of the invalid value. If its type is unknown, it ends with the field that names the type."""
    steps: list[str | int]
    source, *steps = error["loc"]
    if source != "body":
        return steps[-1:]
    path = path_in_body(error, steps, body)
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        path.append("role" if error["ctx"]["discriminator"] == "'role'" else "type")
    return path


_FAILURES: Final[Mapping[str, tuple[int, str]]] = {
    "rate-limit": (429, "rate_limit_exceeded"),
    "context-length": (400, "context_length_exceeded"),
    "bad-request": (400, "invalid_prompt"),
    "refused": (400, "content_policy_violation"),
    "timeout": (504, "upstream_timeout"),
    "unavailable": (503, "upstream_unavailable"),
    "auth": (502, "upstream_auth"),
    "protocol": (502, "upstream_protocol"),
}
"""Status and code by the code of a run's failure. `auth` is not a 401: the rejected key is the server's."""


def of_failure(failure: Failure) -> tuple[int, dict[str, Any]]:
    """The error of a failed run, and its status if nothing was sent yet."""
    if failure.code.startswith(UNSUPPORTED):
        return 400, error_body(400, failure.message, "unsupported_parameter")
    status, code = _FAILURES.get(failure.code, (500, failure.code.replace("-", "_")))
    return status, error_body(status, failure.message, code)
