"""Error responses in the shape of the API that a path belongs to. Their statuses: `server.problem_details`,
`server.openai.errors`."""

from collections.abc import Mapping

from starlette.responses import Response

from holdfast.server import anthropic, openai, problem_details
from holdfast.server.anthropic import errors as anthropic_errors
from holdfast.server.openai import errors as openai_errors


def from_exception(path: str, error: Exception) -> Response:
    if not path.startswith(openai.PREFIX):
        return problem_details.from_exception(error)
    return _shaped(path, openai_errors.response_of(error))


def refusal(path: str, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """The response to a request that the access checks refuse."""
    if not path.startswith(openai.PREFIX):
        return problem_details.problem(status, code, detail, headers)
    return _shaped(path, openai_errors.refusal(status, code, detail, headers))


def _shaped(path: str, response: Response) -> Response:
    return anthropic_errors.convert(response) if path.startswith(anthropic.PREFIX) else response
