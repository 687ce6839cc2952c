"""Models that sessions can use, and a test of one model. Which are offered: `models.catalog`."""

from typing import Annotated, Final

import anyio
from pydantic import Field

from holdfast.ports.agent import AgentError
from holdfast.server.context import ApiContext
from holdfast.server.routes.tools import require_tool_admin
from holdfast.server.routing import Router
from holdfast.server.schemas import models as s

router = Router("models", "/api")

Refresh = Annotated[bool, Field(description="Ask every provider now, instead of answering from recent lists.")]

_TEST_TIMEOUT: Final = 60.0  # Seconds. A local model may have to be loaded first.


@router.get("/models")
async def list_models(api: ApiContext, refresh: Refresh = False) -> s.ModelListResponse:
    """List models; for those that are unavailable, with the reason."""
    if api.models is None:
        return s.ModelListResponse(items=[], default=None)
    items = [s.ModelDetailsResponse.model_validate(model) for model in await api.models.list(refresh=refresh)]
    return s.ModelListResponse(items=items, default=await api.models.default())


@router.post("/models/test")
async def try_model(api: ApiContext, body: s.TestModelRequest) -> s.ModelTestResponse:
    """Ask the model for a one-word answer. This uses a few tokens."""
    started = anyio.current_time()
    answer: str | None = None
    reason: str | None = None
    try:
        with anyio.fail_after(_TEST_TIMEOUT):
            answer = await require_tool_admin(api).try_model(body.model)
    except AgentError as error:
        reason = error.message
    except TimeoutError:
        reason = f"The model did not answer within {_TEST_TIMEOUT:.0f} s."
    duration = int((anyio.current_time() - started) * 1000)
    return s.ModelTestResponse(ok=reason is None, answer=answer, reason=reason, took_ms=duration)
