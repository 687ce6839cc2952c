"""What there is to choose from, and how the server is."""

from starlette.responses import JSONResponse, Response

from holdfast.core.errors import Draining
from holdfast.faces.http import descriptions as d
from holdfast.faces.http.api import Api
from holdfast.faces.http.routing import Router


def routes(api: Api) -> Router:
    router = Router("about")

    @router.get("/api/models", response_model=d.Models)
    async def list_models() -> Response:
        """Models that can be asked, and those that cannot just now, with the reason."""
        if api.models is None:
            return JSONResponse({"items": [], "default": None})
        items = [
            {
                "id": model.id,
                "name": model.name,
                "provider": model.provider,
                "context": model.context,
                "abilities": sorted(model.abilities),
                "available": model.available,
                "reason": model.reason,
            }
            for model in await api.models.list()
        ]
        return JSONResponse({"items": items, "default": await api.models.default()})

    @router.get("/api/agents", response_model=d.Agents)
    async def list_agents() -> Response:
        return JSONResponse({"items": [{"name": name, "can_continue": can} for name, can in api.agents]})

    @router.get("/healthz", response_model=d.Health)
    async def healthz() -> Response:
        """The process lives."""
        return JSONResponse({"status": "ok"})

    @router.get("/readyz", response_model=d.Health)
    async def readyz() -> Response:
        """Storage answers and turns are taken."""
        if api.engine.supervisor.draining:
            raise Draining
        await api.service.ping()
        return JSONResponse({"status": "ok"})

    @router.get("/metrics", response_class=Response)
    async def numbers() -> Response:
        from holdfast.faces.http import metrics  # not every server is asked, and no start waits for Prometheus' library

        body = metrics.render(api.engine, await api.service.count_open_runs(), api.answered)
        return Response(body, media_type="text/plain; version=0.0.4")

    return router
