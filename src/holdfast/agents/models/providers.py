"""Anthropic, Google and others through pydantic-ai's models. The library is an extra, and is imported when one of its
models is first asked: it takes seconds and 84 MB. Its types and exceptions stay in the `provider_*` files."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from holdfast.agents.models import wire
from holdfast.agents.models.endpoint import Patience
from holdfast.agents.models.failures import Trouble, Who, explain
from holdfast.agents.models.port import Answer, Delta, Model, ModelFailed, ModelInfo, Request, Take, ToolCall
from holdfast.agents.models.probe import who
from holdfast.agents.models.provider_config import ProviderConfig, base_url, title
from holdfast.agents.models.retry import RetryPolicy
from holdfast.core.values import dataclass

if TYPE_CHECKING:
    from holdfast.agents.models.provider_stream import Reader


KINDS = ("anthropic", "google")
"""Providers that are asked through the library."""
PLAIN = ("temperature", "top_p", "max_tokens", "seed", "presence_penalty", "frequency_penalty", "parallel_tool_calls")
"""Settings that the library has under the same name."""
_NOT_ANTHROPIC = frozenset({"seed", "presence_penalty", "frequency_penalty"})


def settings_of(kind: str) -> frozenset[str]:
    known = frozenset({*PLAIN, "stop", "reasoning_effort", "tool_choice"})
    return known - _NOT_ANTHROPIC if kind == "anthropic" else known


def missing(kind: str) -> str | None:
    """What has to be installed before models of this kind can be asked, as a sentence."""
    if kind not in KINDS or find_spec("pydantic_ai") is not None:
        return None
    return "It needs an extra that is not installed: pip install 'holdfast[providers]'."


class Providers:
    """The library's models of one event loop, each made once. `aclose` closes their connections."""

    def __init__(
        self,
        patience: Patience,
        retry: RetryPolicy,
        *,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.patience = patience
        self.retry = retry
        self.sleep = sleep
        self.chance = chance
        self._made: dict[tuple[str, str], tuple[Any, Any]] = {}

    def model(self, info: ModelInfo, config: ProviderConfig, name: str) -> Model:
        return ProviderModel(info, config, name, self)

    async def made(self, config: ProviderConfig, name: str) -> tuple[Any, Any]:
        """The library's model and its client. The import takes seconds and is done in a thread."""
        key = (config.name, name)
        if key not in self._made:
            make = await anyio.to_thread.run_sync(_load, abandon_on_cancel=True)
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
        self._made: tuple[Any, Any] = (None, None)
        self._attempt = 0
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
        self._made = made
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reader is not None:
            await self._reader.close()

    async def follow(self, take: Take) -> None:
        pass

    def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        return self

    async def __anext__(self) -> Sequence[Delta]:
        limits = self._model.providers.patience
        while not self._over:
            assert self._reader is not None
            patience = limits.idle if self._begun else limits.first_token
            try:
                with anyio.fail_after(patience):
                    deltas, trouble = await self._reader.next()
            except TimeoutError:
                deltas, trouble = None, Trouble("timeout", f"nothing came for {patience:g} s")
            if trouble is not None:
                await self._wait_for_another(trouble)
                await self._open()
                continue
            self._over = deltas is None
            if deltas:
                self._begun = True
                return deltas
        raise StopAsyncIteration

    async def _open(self) -> None:
        """Ask until there is an answer, or no hope of one."""
        from holdfast.agents.models.provider_stream import Reader

        patience = self._model.providers.patience.first_token
        while True:
            self._attempt += 1
            self._reader = Reader(*self._made, self._model.info.abilities, wire.call_ids(self._request))
            trouble: Trouble | None = None
            try:
                with anyio.fail_after(patience):
                    trouble = await self._reader.open(self._request)
            except TimeoutError:
                trouble = Trouble("timeout", f"no answer within {patience:g} s")
            except BaseException:
                await self._reader.close()
                raise
            if trouble is None:
                return
            await self._wait_for_another(trouble)

    async def _wait_for_another(self, trouble: Trouble) -> None:
        """Until it is time for another attempt; ModelFailed if there is none, or if something was given out."""
        if self._reader is not None:
            await self._reader.close()
        providers = self._model.providers
        wait = None if self._begun else providers.retry.wait(trouble, self._attempt, providers.chance())
        if wait is None:
            raise self._failed(trouble)
        await providers.sleep(wait)

    def _failed(self, trouble: Trouble) -> ModelFailed:
        failed = explain(trouble, self._model.who())
        failed.__suppress_context__ = True
        return failed
