"""The app: routes, errors and the guard, put together."""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Protocol

from fastapi import FastAPI
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.responses import Response
from starlette.types import ASGIApp

from holdfast import __version__
from holdfast.faces.http import pages, problems, web
from holdfast.faces.http.api import Api
from holdfast.faces.http.guard import Guard, Refusal
from holdfast.faces.http.routes import (
    about,
    entry,
    files,
    memory,
    runs,
    sessions,
    settings,
    streams,
    transfer,
    workshop,
)
from holdfast.faces.http.routing import Router


class Face(Protocol):
    """Another wire format on the same server. Its paths begin with `prefix`, its routes are a `Router`'s, its errors
    have a shape of their own."""

    prefix: str

    def install(self, app: FastAPI, api: Api) -> None: ...
    def refusal(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None) -> Response: ...


def build(api: Api, faces: Sequence[Face] = ()) -> ASGIApp:
    # FastAPI silences this where it makes checks of what a route takes; ours are made later, outside of that.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    app = FastAPI(
        title="Holdfast",
        version=__version__,
        description="AI chat and agents that never lose a token.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    problems.install(app)
    for router in _routers(api):
        router.put_into(app)
    for face in faces:
        face.install(app, api)
    web.install(app)
    pages.install(app)
    refusals: dict[str, Refusal] = {face.prefix: face.refusal for face in faces}
    return Guard(app, api.gate, api.limits.max_body, api.answered, refusals)


def _routers(api: Api) -> list[Router]:
    return [
        sessions.routes(api),
        runs.routes(api),
        streams.routes(api),
        files.routes(api),
        transfer.routes(api),
        memory.routes(api),
        about.routes(api),
        settings.routes(api),
        workshop.routes(api),
        entry.routes(api, time.monotonic),
    ]
