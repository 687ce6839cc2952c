"""OpenAI's calls put into the app: routes, and errors of everything below `/v1` in its shape."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from holdfast.core.errors import HoldfastError
from holdfast.faces.http.api import Api
from holdfast.faces.openai import errors
from holdfast.faces.openai.routes import chat, conversations, models, responses

log = logging.getLogger("holdfast.http")

Handler = Callable[[Request, Exception], Awaitable[Response]]


class OpenAIFace:
    prefix = "/v1/"

    def install(self, app: FastAPI, api: Api) -> None:
        for router in (models.routes(api), chat.routes(api), responses.routes(api), conversations.routes(api)):
            router.put_into(app)
        for kind in (HoldfastError, RequestValidationError, HTTPException, Exception):
            app.add_exception_handler(kind, self._below(app.exception_handlers[kind]))

    def refusal(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None) -> Response:
        return errors.refusal(status, code, detail, headers)

    def _below(self, elsewhere: Any) -> Handler:
        async def handle(request: Request, error: Exception) -> Response:
            if not request.url.path.startswith(self.prefix):
                answer: Response = await elsewhere(request, error)
                return answer
            found = errors.of(error)
            if found.status_code >= 500:
                log.warning("a call failed: %s", type(error).__name__)
            return found

        return handle
