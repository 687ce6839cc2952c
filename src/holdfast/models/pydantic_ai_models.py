"""Anthropic and Google models through pydantic-ai. The library is an optional extra and is imported when one of its
models is first used: it takes seconds and 84 MB. Its types and exceptions stay in the `pydantic_ai_*` files."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

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


class PydanticAIModels:
    """The library's models of one event loop, each created once. `aclose` closes their connections."""

    def __init__(self, policy: RequestPolicy) -> None:
        self.policy = policy
        self.by_name: dict[tuple[str, str], tuple[Any, Any]] = {}
        """The library's model and its HTTP client, by provider and model."""

    async def aclose(self) -> None:
        models = list(self.by_name.values())
        self.by_name.clear()
        for _, client in models:
            await client.aclose()


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
        answer = library.PydanticAIAnswer(self, request)
        try:
            await answer.open()
            yield answer
        finally:
            await answer.close()
