"""Routes by their subject, put into one app."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, FastAPI

from holdfast.faces.http import descriptions as d

Responses = Mapping[int | str, dict[str, Any]]

_PROBLEM: Final[dict[str, Any]] = {
    "model": d.Problem,
    "description": "Refused: the problem says why.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
PROBLEMS: Final[Responses] = {"4XX": _PROBLEM, "5XX": _PROBLEM}


class Router(APIRouter):
    """Its routes stand in the app themselves: FastAPI puts those of an included router together a second time, with the
    first request, and looks for the right one twice with each."""

    def __init__(self, subject: str, prefix: str = "", responses: Responses = PROBLEMS) -> None:
        super().__init__(
            prefix=prefix,
            tags=[subject],
            responses=dict(responses),
            generate_unique_id_function=lambda route: route.name,
        )

    def put_into(self, app: FastAPI) -> None:
        app.router.routes.extend(self.routes)
