"""Errors in Anthropic's shape, `{"type": "error", "error": {type, message}}`, with the statuses of OpenAI's."""

import json
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from holdfast.core.events import Failure
from holdfast.server.openai import errors

_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
THREAD_UNSUPPORTED: Final = "thread_unsupported_request"
"""The code at which a client sends the whole conversation instead of continuing a thread."""
_OF_THE_BODY: Final = ("content-length", "content-type")


def error_body(status: int, message: str, code: str | None = None) -> dict[str, Any]:
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    error: dict[str, Any] = {"type": kind, "message": message}
    if code == THREAD_UNSUPPORTED:
        error["details"] = {"error_code": code, "unsupported": ["thread"]}
    return {"type": "error", "error": error}


def of_failure(failure: Failure) -> tuple[int, dict[str, Any]]:
    """The error of a failed run, and its status if nothing was sent yet."""
    status = errors.of_failure(failure)[0]
    return status, error_body(status, failure.message)


def convert(response: Response) -> Response:
    """The same error, from OpenAI's shape."""
    error = json.loads(bytes(response.body))["error"]
    headers = {name: value for name, value in response.headers.items() if name not in _OF_THE_BODY}
    return JSONResponse(
        error_body(response.status_code, error["message"], error.get("code")), response.status_code, headers
    )
