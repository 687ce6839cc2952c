"""Model discovery: which local servers are looked for, and how any provider is asked for its models. A local server is
a known port on the loopback address that lists models in its kind's format."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio
from anyio import to_thread
from yarl import URL

from holdfast.core.json_limits import has_too_many_values
from holdfast.core.lenient_json import loads
from holdfast.core.parts import Json
from holdfast.models import model_listings
from holdfast.models.chat_completion_stream import failed_body
from holdfast.models.http_client import HttpClient
from holdfast.models.http_connection import HttpError
from holdfast.models.model_listings import ListedModel, unique
from holdfast.models.provider_config import ProviderConfig, base_url, request_headers
from holdfast.models.upstream_errors import UpstreamError, explain
from holdfast.ports.model import ProviderKind

LOCAL_PORTS: Final[Mapping[ProviderKind, int]] = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
NO_MODELS: Final = UpstreamError("unavailable", "it has no chat models")
_MAX_LIST: Final = 8 * 1024 * 1024  # Bytes of a response
_MAX_STRUCTURE: Final = 1024 * 1024  # Of those, bytes outside of strings; a list of 500 models has a tenth
_MAX_STRINGS: Final = 200_000
_MAX_OPTIONAL: Final = 1024 * 1024  # Bytes of a response that is not the list of models
_MAX_DETAILS: Final = 40  # Ollama models whose details are asked for


def local_servers(ports: Mapping[ProviderKind, int] | None = None) -> tuple[ProviderConfig, ...]:
    """Servers that may be listening on this machine, at their usual ports or at those given."""
    return tuple(
        ProviderConfig(name=kind, kind=kind, base_url=f"http://127.0.0.1:{port}/v1", discovered=True)
        for kind, port in (LOCAL_PORTS if ports is None else ports).items()
    )


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The models of a provider, or the reason why there are none, in words for people."""

    models: tuple[ListedModel, ...] = ()
    reason: str | None = None
    error: UpstreamError | None = None

    @property
    def key_rejected(self) -> bool:
        return self.error is not None and self.error.code == "auth"

    @property
    def is_slow(self) -> bool:
        """It may be busy or loading a model, so this does not say that it cannot answer."""
        return self.error is not None and self.error.code == "timeout"

    @property
    def is_down(self) -> bool:
        return self.reason is not None and not self.is_slow


async def probe(http: HttpClient, time_limit: float, config: ProviderConfig) -> ProbeResult:
    """Asks a provider for its models. A failure of the provider is a result, not an exception."""
    try:
        async with asyncio.timeout(time_limit):
            models = await _LISTERS.get(config.kind, _list_openai)(_Lister(http, config))
    except TimeoutError:
        error = UpstreamError("timeout", "it did not list its models in time")
    except HttpError as failed:
        error = failed.error
    except ValueError:
        error = UpstreamError("protocol", "its list of models cannot be read")
    else:
        if models:
            return ProbeResult(unique(models))
        error = NO_MODELS
    return ProbeResult(reason=str(explain(error, config, None)), error=error)


@dataclass(frozen=True, slots=True)
class _Lister:
    """Fetches JSON from one provider."""

    http: HttpClient
    config: ProviderConfig

    async def fetch(self, path: str, body: Json = None, *, below_v1: bool = True, most: int = _MAX_LIST) -> Json:
        """GET, or POST if there is a body. Raises HttpError, or ValueError for a response that cannot be read. It is
        parsed in a thread: whatever listens at a usual port is asked."""
        base = base_url(self.config) if below_v1 else base_url(self.config).removesuffix("/v1")
        headers = {"Accept": "application/json"} | ({} if body is None else {"Content-Type": "application/json"})
        method, content = ("GET", b"") if body is None else ("POST", json.dumps(body).encode())
        response = await self.http.request(method, URL(base + path), request_headers(self.config, headers), content)
        try:
            data = bytearray()
            while piece := await response.read():
                data += piece
                if len(data) > most:
                    raise ValueError("too large")
        finally:
            response.abort()
        if response.status != 200:
            raise HttpError(failed_body(response.status, bytes(data), None))
        return await to_thread.run_sync(_parse, bytes(data))

    async def fetch_optional(self, path: str, body: Json = None) -> Json:
        """From a server's own API, which is not below `/v1`; None if the server does not have it."""
        try:
            return await self.fetch(path, body, below_v1=False, most=_MAX_OPTIONAL)
        except (HttpError, ValueError):
            return None


def _parse(data: bytes) -> Json:
    if has_too_many_values(data, _MAX_STRUCTURE, _MAX_STRINGS):
        raise ValueError("too many values")
    return loads(data)


async def _list(path: str, parse: Callable[[Json], list[ListedModel]], lister: _Lister) -> list[ListedModel]:
    return parse(await lister.fetch(path))


_list_openai: Final = partial(_list, "/models", model_listings.from_openai)


async def _list_lmstudio(lister: _Lister) -> list[ListedModel]:
    """Its own list says more; older versions have only OpenAI's."""
    try:
        return model_listings.from_openai(await lister.fetch("/api/v0/models", below_v1=False))
    except (HttpError, ValueError):
        return await _list_openai(lister)


async def _list_llamacpp(lister: _Lister) -> list[ListedModel]:
    models = await _list_openai(lister)
    if not model_listings.sees_images(await lister.fetch_optional("/props")):
        return models
    return [replace(m, abilities=frozenset({"tools", "images"})) for m in models]


async def _list_ollama(lister: _Lister) -> list[ListedModel]:
    tags = await lister.fetch("/api/tags", below_v1=False)
    try:
        names = model_listings.from_ollama(tags)
    except ValueError:
        return await _list_openai(lister)
    models: dict[str, ListedModel | None] = {name: ListedModel(name, name) for name in names}

    async def add_details(name: str) -> None:
        details = await lister.fetch_optional("/api/show", {"model": name})
        if details is not None:
            models[name] = model_listings.from_ollama_show(name, details)

    async with anyio.create_task_group() as group:
        for name in names[:_MAX_DETAILS]:
            group.start_soon(add_details, name)
    loaded = model_listings.from_ollama_ps(await lister.fetch_optional("/api/ps"))
    return [replace(m, context=loaded.get(m.name, m.context)) for m in models.values() if m is not None]


_LISTERS: Final[Mapping[str, Callable[[_Lister], Awaitable[list[ListedModel]]]]] = {
    "ollama": _list_ollama,
    "lmstudio": _list_lmstudio,
    "llamacpp": _list_llamacpp,
    "anthropic": partial(_list, "/v1/models?limit=100", model_listings.from_anthropic),
    "google": partial(_list, "/v1beta/models?pageSize=200", model_listings.from_google),
}
