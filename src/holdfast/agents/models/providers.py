"""Anthropic, Google and others through pydantic-ai's models. The library is an extra, and is imported when one of its
models is first asked: it takes seconds and 84 MB. Its types and exceptions stay in the `provider_*` files."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from holdfast.agents.models import wire
from holdfast.agents.models.endpoint import Patience
from holdfast.agents.models.failures import Trouble, Who, explain
from holdfast.agents.models.port import Answer, Delta, Model, ModelFailed, ModelInfo, Request, ToolCall
from holdfast.agents.models.probe import who
from holdfast.agents.models.provider_config import ProviderConfig, base_url, title

if TYPE_CHECKING:
    from holdfast.agents.models.provider_stream import Reader


KINDS = ("anthropic", "google")
"""Providers that are asked through the library."""


def missing(kind: str) -> str | None:
    """What has to be installed before models of this kind can be asked, as a sentence."""
    if kind not in KINDS or find_spec("pydantic_ai") is not None:
        return None
    return "It needs an extra that is not installed: pip install 'holdfast[providers]'."


class Providers:
    """The library's models of one event loop, each made once. `aclose` closes their connections."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self._made: dict[tuple[str, str], tuple[Any, Any]] = {}

    def model(self, info: ModelInfo, config: ProviderConfig, name: str) -> Model:
        return ProviderModel(info, config, name, self)

    async def made(self, config: ProviderConfig, name: str) -> tuple[Any, Any]:
        """The library's model and its client. The import takes seconds and is done in a thread."""
        key = (config.name, name)
        if key not in self._made:
            make = await anyio.to_thread.run_sync(_load)
            if key not in self._made:
                self._made[key] = make(config.kind, name, base_url(config), config.api_key or "", self.patience)
        return self._made[key]

    async def aclose(self) -> None:
        made = list(self._made.values())
        self._made.clear()
        for _, client in made:
            await client.aclose()


def _load() -> Callable[..., tuple[Any, Any]]:
    from holdfast.agents.models.provider_stream import make

    return make


@dataclass(frozen=True, slots=True)
class ProviderModel:
    info: ModelInfo
    config: ProviderConfig
    name: str
    providers: Providers

    def stream(self, request: Request) -> AbstractAsyncContextManager[Answer]:
        return _ProviderAnswer(self, request)

    def who(self) -> Who:
        return who(self.config, self.name)


class _ProviderAnswer:
    def __init__(self, model: ProviderModel, request: Request) -> None:
        self._model = model
        self._request = request
        self._reader: Reader | None = None
        self._begun = False
        self._over = False

    @property
    def calls(self) -> Sequence[ToolCall]:
        return () if self._reader is None else self._reader.calls

    @property
    def finish_reason(self) -> str | None:
        return None if self._reader is None else self._reader.finish_reason

    async def __aenter__(self) -> "_ProviderAnswer":
        model = self._model
        try:
            made = await model.providers.made(model.config, model.name)
        except ImportError:
            raise ModelFailed(
                "unavailable",
                f"Models of {title(model.config)} need an extra that is not installed: pip install "
                "'holdfast[providers]'. Install it, or choose another model.",
            ) from None
        from holdfast.agents.models.provider_stream import Reader

        self._reader = Reader(*made, model.info.abilities, wire.call_ids(self._request))
        patience = model.providers.patience.first_token
        trouble: Trouble | None = None
        try:
            with anyio.fail_after(patience):
                trouble = await self._reader.open(self._request)
        except TimeoutError:
            trouble = Trouble("timeout", f"no answer within {patience:g} s")
        if trouble is not None:
            await self._reader.close()
            raise self._failed(trouble)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reader is not None:
            await self._reader.close()

    def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        return self

    async def __anext__(self) -> Sequence[Delta]:
        assert self._reader is not None
        limits = self._model.providers.patience
        patience = limits.idle if self._begun else limits.first_token
        while not self._over:
            try:
                with anyio.fail_after(patience):
                    deltas, trouble = await self._reader.next()
            except TimeoutError:
                raise self._failed(Trouble("timeout", f"nothing came for {patience:g} s")) from None
            if trouble is not None:
                raise self._failed(trouble)
            self._over = deltas is None
            if deltas:
                self._begun = True
                return deltas
        raise StopAsyncIteration

    def _failed(self, trouble: Trouble) -> ModelFailed:
        failed = explain(trouble, self._model.who())
        failed.__suppress_context__ = True
        return failed
