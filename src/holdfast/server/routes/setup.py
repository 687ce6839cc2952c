"""The first start: find model servers, connect one or download a small model, and remember that this was offered. The
checks of a server that is added: `app.added_providers`."""

from functools import partial
from typing import Final

from anyio import from_thread
from anyio.abc import ObjectSendStream
from starlette.requests import Request

from holdfast.core.errors import HoldfastError, InvalidInputError, NotAllowedError
from holdfast.core.ids import LOCAL
from holdfast.ports.store import SessionQuery
from holdfast.server import security_log
from holdfast.server.client_address import request_address
from holdfast.server.context import ApiContext, AvailableModels
from holdfast.server.event_sources import ProducedSource, progress_frame
from holdfast.server.event_stream import EventStream
from holdfast.server.parameters import IdPath
from holdfast.server.reauthentication import require_recent_login
from holdfast.server.routing import STREAM_RESPONSE, Router
from holdfast.server.schemas import settings as s

router = Router("setup", "/api")

_DONE: Final = "setup_done"  # Name of the setting
_DEMO: Final = "demo"  # The provider of the model that is always there


def _models(api: ApiContext) -> AvailableModels:
    if api.models is None:
        raise NotAllowedError("connect a model", "no models can be configured on this server")
    return api.models


@router.get("/setup")
async def read_setup(api: ApiContext) -> s.SetupResponse:
    """Whether to offer connecting a model: at the first start or while there is none, until it was done or skipped."""
    size = None if api.models is None else api.models.download_size
    return s.SetupResponse(needed=await _is_needed(api), download_size=size)


async def _is_needed(api: ApiContext) -> bool:
    if api.models is None or (await api.engine.preferences.settings()).get(_DONE):
        return False
    if not await api.engine.sessions.list(SessionQuery(LOCAL, limit=1)):
        return True
    return not any(model.available and model.provider != _DEMO for model in await api.models.list())


@router.post("/setup/done", status=204)
async def finish_setup(api: ApiContext) -> None:
    """Do not offer it again."""
    await api.engine.preferences.change({_DONE: True})


@router.post("/providers/discover")
async def discover_providers(api: ApiContext) -> s.ProviderCheckListResponse:
    """Ask the configured providers, and the usual model servers on this machine, for their models now."""
    found = await _models(api).discover()
    return s.ProviderCheckListResponse(
        items=[s.ProviderCheckResponse.model_validate(each) for each in found], next=None
    )


@router.post("/providers")
async def connect_provider(
    api: ApiContext, request: Request, body: s.ConnectProviderRequest
) -> s.ProviderCheckResponse:
    """Test a provider's key, or a server at any address, and store it if it has models. Needs a recent login."""
    require_recent_login(request, "connect a model provider")
    if (body.base_url is None) == (body.provider is None):
        raise InvalidInputError("base_url", "give either a provider or a base_url")
    checked = await _models(api).connect(body.provider, body.base_url, body.key, body.name)
    if checked.models:
        address = request_address(request, api.trusted_proxies)
        security_log.record("model provider stored", address=address, provider=checked.name)
    return s.ProviderCheckResponse.model_validate(checked)


@router.post("/models/download", responses={200: STREAM_RESPONSE})
async def download_model(api: ApiContext, request: Request) -> EventStream:
    """Download the small model that runs on this machine, and install the program that runs it. The stream reports
    `progress`, then `done` or `failed`; closing it stops the download. Needs a recent login."""
    require_recent_login(request, "download the small model")
    models = _models(api)
    security_log.record("model download started", address=request_address(request, api.trusted_proxies))
    return EventStream(ProducedSource([partial(_download, models)]), api.limits.streams)


async def _download(models: AvailableModels, send: ObjectSendStream[list[bytes]]) -> None:
    def report(done: int, total: int) -> None:
        from_thread.check_cancelled()
        from_thread.run(send.send, [progress_frame("progress", {"done": done, "total": total})])

    try:
        await models.download(report)
        await send.send([progress_frame("done", {})])
    except HoldfastError as error:
        await send.send([progress_frame("failed", {"type": error.code, "detail": str(error)})])


@router.patch("/providers/{name}", status=204)
async def change_provider(api: ApiContext, name: IdPath, body: s.UpdateProviderRequest) -> None:
    """Choose whether models of a server that was connected here are sent images even if it does not say that they can
    see them."""
    await _models(api).set_images(name, body.images)


@router.delete("/providers/{name}", status=204)
async def remove_provider(api: ApiContext, request: Request, name: IdPath) -> None:
    """Remove a server that was connected here, with its key."""
    await _models(api).remove(name)
    security_log.record("model provider removed", address=request_address(request, api.trusted_proxies), provider=name)
