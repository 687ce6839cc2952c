"""Asking a provider for its models, within a short time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import anyio
from yarl import URL

from holdfast.agents.models import listing
from holdfast.agents.models.chatstream import failed_body
from holdfast.agents.models.endpoint import place
from holdfast.agents.models.failures import Trouble, Who, explain
from holdfast.agents.models.http import Http, is_loopback, network_errors, unreachable
from holdfast.agents.models.jsons import loads
from holdfast.agents.models.listing import Listed
from holdfast.agents.models.provider_config import ProviderConfig, base_url, title
from holdfast.core.parts import Json
from holdfast.core.values import dataclass, replace

_LARGEST = 8 * 1024 * 1024
_MOST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Seen:
    """What a provider said: models, or the reason why there are none, in words for people."""

    models: tuple[Listed, ...] = ()
    reason: str | None = None


async def probe(http: Http, config: ProviderConfig, *, here: float, elsewhere: float) -> Seen:
    """Never raises for anything that a provider does. `here` and `elsewhere`: seconds for servers on this machine and
    for others."""
    try:
        patience = here if is_loopback(URL(base_url(config))) else elsewhere
        async with asyncio.timeout(patience):
            models = await _ASK.get(config.kind, _openai)(_Asker(http, config))
    except TimeoutError:
        trouble = Trouble("timeout", "it did not list its models in time")
    except network_errors() as error:
        trouble = unreachable(error)
    except _Refused as refused:
        trouble = refused.trouble
    except ValueError:
        trouble = Trouble("protocol", "its list of models cannot be read")
    else:
        if models:
            return Seen(tuple(models))
        trouble = Trouble("unavailable", "it has no model that chats")
    return Seen(reason=str(explain(trouble, who(config, "any model"))))


def who(config: ProviderConfig, model: str) -> Who:
    key_name = config.key_name or f"the key of {config.name}"
    return Who(title(config), model, place(base_url(config)), key_name, config.api_key)


class _Refused(Exception):
    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.detail)
        self.trouble = trouble


@dataclass(frozen=True, slots=True)
class _Asker:
    http: Http
    config: ProviderConfig

    def headers(self) -> dict[str, str]:
        key, kind = self.config.api_key, self.config.kind
        headers = {"Accept": "application/json", "User-Agent": "holdfast", **self.config.headers}
        if key and kind == "anthropic":
            headers |= {"x-api-key": key, "anthropic-version": "2023-06-01"}
        elif key and kind == "google":
            headers["x-goog-api-key"] = key
        elif key:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    async def json(
        self, path: str, *, method: Literal["GET", "POST"] = "GET", body: Mapping[str, Json] | None = None
    ) -> Json:
        import aiohttp  # as in http.py

        url = URL(base_url(self.config) + path)
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.http.session().request(
            method,
            url,
            json=body,
            headers=self.headers(),
            proxy=self.http.proxy(url),
            allow_redirects=False,
            timeout=timeout,
        ) as response:
            pieces: list[bytes] = []
            size = 0
            while piece := await response.content.readany():
                pieces.append(piece)
                size += len(piece)
                if size > _LARGEST:
                    raise ValueError("too large")
            data = b"".join(pieces)
            if response.status != 200:
                raise _Refused(failed_body(response.status, data, None))
            return loads(data)


async def _openai(ask: _Asker) -> list[Listed]:
    return _known(listing.from_openai(await ask.json("/models")))


async def _lmstudio(ask: _Asker) -> list[Listed]:
    """Its own list says more; older versions have only OpenAI's."""
    own = replace(ask, config=replace(ask.config, base_url=base_url(ask.config).removesuffix("/v1")))
    try:
        return _known(listing.from_openai(await own.json("/api/v0/models")))
    except (_Refused, ValueError):
        return await _openai(ask)


async def _llamacpp(ask: _Asker) -> list[Listed]:
    models = await _openai(ask)
    own = replace(ask, config=replace(ask.config, base_url=base_url(ask.config).removesuffix("/v1")))
    if not listing.sees_images(await _or_none(own, "/props")):
        return models
    return [replace(m, abilities=frozenset({"tools", "images"})) for m in models]


async def _ollama(ask: _Asker) -> list[Listed]:
    own = replace(ask, config=replace(ask.config, base_url=base_url(ask.config).removesuffix("/v1")))
    names = listing.from_ollama(await own.json("/api/tags"))
    if names is None:
        return await _openai(ask)
    shown: dict[str, Listed | None] = {name: Listed(name, name) for name in names}

    async def show(name: str) -> None:
        try:
            found = await own.json("/api/show", method="POST", body={"model": name})
        except (_Refused, ValueError, *network_errors()):
            return
        shown[name] = listing.from_ollama_show(name, found)

    async with anyio.create_task_group() as group:
        for name in names[:_MOST_SHOWN]:
            group.start_soon(show, name)
    loaded = listing.from_ollama_ps(await _or_none(own, "/api/ps"))
    return [replace(m, context=loaded.get(m.name, m.context)) for m in shown.values() if m is not None]


async def _or_none(ask: _Asker, path: str) -> Json:
    """What may be missing without the rest being worth less."""
    try:
        return await ask.json(path)
    except (_Refused, ValueError):
        return None


async def _anthropic(ask: _Asker) -> list[Listed]:
    return _known(listing.from_anthropic(await ask.json("/v1/models?limit=100")))


async def _google(ask: _Asker) -> list[Listed]:
    return _known(listing.from_google(await ask.json("/v1beta/models?pageSize=200")))


def _known(models: list[Listed] | None) -> list[Listed]:
    if models is None:
        raise ValueError("no list of models")
    return models


_ASK: Mapping[str, Callable[[_Asker], Awaitable[list[Listed]]]] = {
    "ollama": _ollama,
    "lmstudio": _lmstudio,
    "llamacpp": _llamacpp,
    "anthropic": _anthropic,
    "google": _google,
}
