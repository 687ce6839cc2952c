"""Health checks and metrics. When a node is not ready: `engine.readiness`."""

from starlette.responses import Response

from holdfast.core.ids import LOCAL
from holdfast.ports.store import SessionQuery
from holdfast.server.context import ApiContext
from holdfast.server.routing import ResponseInfo, Router
from holdfast.server.schemas.models import HealthResponse

router = Router("health")


@router.get("/healthz")
async def healthz() -> HealthResponse:
    """The process is alive."""
    return HealthResponse(status="ok")


@router.get("/readyz")
async def readyz(api: ApiContext) -> HealthResponse:
    """Storage is reachable and the server accepts new runs."""
    refusal = await api.engine.readiness.refusal()
    if refusal is not None:
        raise refusal
    await api.engine.ping()
    await api.engine.sessions.list(SessionQuery(LOCAL, limit=1))  # a damaged file may still say what time it is
    await api.engine.runs.count_open()
    return HealthResponse(status="ok")


@router.get("/metrics", responses={200: ResponseInfo("Prometheus metrics.", media_types=("text/plain",))})
async def read_metrics(api: ApiContext) -> Response:
    """Metrics in Prometheus' text format."""
    from holdfast.server import metrics  # imports Prometheus' library, which the start does not wait for

    body = metrics.render(api.engine, await api.engine.runs.count_open(), api.request_counts)
    return Response(body, media_type="text/plain; version=0.0.4")
