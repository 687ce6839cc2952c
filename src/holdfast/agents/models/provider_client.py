"""The HTTP client under pydantic-ai's models. It can close the response of one answer by name: the libraries above it
wrap responses in generators that a cancellation leaves to the garbage collector."""

from typing import Any

import httpx2

from holdfast.agents.models.endpoint import Patience

ANSWER = "x-holdfast-answer"
"""A request header that names the answer. It is taken off before anything is sent."""


class Client(httpx2.AsyncClient):
    def __init__(self, patience: Patience) -> None:
        super().__init__(timeout=httpx2.Timeout(patience.first_token, connect=patience.connect))
        self._open: dict[str, httpx2.Response] = {}
        self._answers = 0

    def new_answer(self) -> str:
        self._answers += 1
        return str(self._answers)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        answer = request.headers.pop(ANSWER, None)
        response = await super().send(request, **options)
        if answer is not None:
            self._open[answer] = response
        return response

    async def close_answer(self, answer: str) -> None:
        """Close the connection of this answer, if it still has one."""
        response = self._open.pop(answer, None)
        if response is not None:
            await response.aclose()
