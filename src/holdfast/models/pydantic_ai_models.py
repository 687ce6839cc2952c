"""Anthropic and Google models through pydantic-ai. The library is an optional extra and is imported when one of its
models is first used: it takes seconds and 84 MB. Its types and exceptions stay in the `pydantic_ai_*` files."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import anyio
from anyio import to_thread

from holdfast.models.provider_config import ProviderConfig, title
from holdfast.models.request_policy import RequestPolicy
from holdfast.ports.model import ModelAnswer, ModelError, ModelInfo, ModelRequest

KINDS = ("anthropic", "google")  # Kinds of provider that are reached through the library
SAME_NAME_SETTINGS = frozenset(
    {"temperature", "top_p", "max_tokens", "seed", "presence_penalty", "frequency_penalty", "parallel_tool_calls"}
)
"""Settings with the same name in the library."""
_LIBRARY = "holdfast.models.pydantic_ai_stream"
_NOT_ANTHROPIC = frozenset({"seed", "presence_penalty", "frequency_penalty"})


def settings_of(kind: str) -> frozenset[str]:
    known = SAME_NAME_SETTINGS | {"stop", "reasoning_effort", "tool_choice"}
    return known - _NOT_ANTHROPIC if kind == "anthropic" else known


def missing_extra(kind: str) -> str | None:
    """What to install before models of this kind can be used, as a sentence; None if nothing."""
    if kind not in KINDS or find_spec("pydantic_ai") is not None:
        return None
    return "It needs an extra that is not installed. Run `pip install 'holdfast[providers]'`."


@dataclass(slots=True)
class LibraryClient:
    """A model of the library with its HTTP client, which answers share."""

    config: ProviderConfig  # The configuration that it was created with
    model: Any
    http: Any
    answers: int = 0  # Answers that use it now


class PydanticAIModels:
    """The library's models of one event loop, each created once and again when its key or address changes. `aclose`
    closes their connections."""

    def __init__(self, policy: RequestPolicy) -> None:
        self.policy = policy
        self._clients: dict[tuple[str, str], LibraryClient] = {}  # by provider and model

    async def acquire(self, config: ProviderConfig, name: str, create: Callable[..., tuple[Any, Any]]) -> LibraryClient:
        """The client for an answer, to be released after it."""
        key = (config.name, name)
        old = client = self._clients.get(key)
        if client is None or client.config != config:
            client = self._clients[key] = LibraryClient(config, *create(config, name, self.policy.timeouts))
        client.answers += 1
        if old is not None and old is not client and old.answers == 0:
            await old.http.aclose()
        return client

    async def release(self, client: LibraryClient, name: str) -> None:
        """Closes a client that was replaced, once its last answer has ended."""
        client.answers -= 1
        if client.answers == 0 and self._clients.get((client.config.name, name)) is not client:
            await client.http.aclose()

    async def aclose(self) -> None:
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.http.aclose()


@dataclass(frozen=True, slots=True)
class PydanticAIModel:
    info: ModelInfo
    config: ProviderConfig
    name: str
    models: PydanticAIModels

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelAnswer]:
        try:
            library = await to_thread.run_sync(import_module, _LIBRARY, abandon_on_cancel=True)
        except ImportError:
            raise ModelError(
                "unavailable",
                f"{title(self.config)} models need an extra that is not installed. Run `pip install "
                "'holdfast[providers]'`, or choose another model.",
            ) from None
        client = await self.models.acquire(self.config, self.name, library.create_model)
        answer = library.PydanticAIAnswer(self, client, request)
        try:
            await answer.open()
            yield answer
        finally:
            await answer.close()
            with anyio.move_on_after(5, shield=True):
                await self.models.release(client, self.name)
