"""Who can be asked: models by their ids, agents of ours as `agent:NAME`."""

from typing import Annotated, Any

from fastapi import Path
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import NotFound
from holdfast.faces.http.api import Api
from holdfast.faces.http.routing import Router
from holdfast.faces.openai import described as d
from holdfast.faces.openai.targets import AGENT, DIRECT


def routes(api: Api) -> Router:
    router = Router("openai", "/v1/models", d.ERRORS)

    async def known() -> list[dict[str, Any]]:
        found = [] if api.models is None else [model for model in await api.models.list() if model.available]
        listed = [_listed(model.id, model.provider) for model in found]
        return listed + [_listed(f"{AGENT}{name}", "holdfast") for name, _ in api.agents if name != DIRECT]

    @router.get("", response_model=d.Models)
    async def openai_models() -> Response:
        return JSONResponse({"object": "list", "data": await known()})

    @router.get("/{model:path}", response_model=d.Model)
    async def openai_model(model: Annotated[str, Path(max_length=500)]) -> Response:
        for item in await known():
            if item["id"] == model:
                return JSONResponse(item)
        raise NotFound("model", model)

    return router


def _listed(name: str, owner: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}
