"""Asking a model in a test: everything that it gave out, and how it ended."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from holdfast.core.events import Event, ReasoningDelta, TextDelta, ToolDelta, Usage, merge
from holdfast.models.http_client import HttpClient
from holdfast.models.openai_client import OpenAIModel
from holdfast.models.provider_config import ProviderConfig
from holdfast.models.request_policy import RequestPolicy, Timeouts
from holdfast.ports.model import Delta, Model, ModelError, ModelInfo, ModelRequest, ToolCall, UserMessage
from holdfast.testing.fakes import FakeClock
from tests.upstream import GUARD, Upstream

KEY = "sk-very-secret-0123456789"
HELLO = ModelRequest(None, (UserMessage(("Hello",)),))


@dataclass
class Outcome:
    deltas: list[Delta] = field(default_factory=list)
    batches: int = 0
    failed: ModelError | None = None
    calls: Sequence[ToolCall] = ()
    finish_reason: str | None = None

    @property
    def code(self) -> str | None:
        return None if self.failed is None else self.failed.code

    @property
    def text(self) -> str:
        return "".join(d.text for d in self.deltas if isinstance(d, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(d.text for d in self.deltas if isinstance(d, ReasoningDelta))

    @property
    def usage(self) -> list[Usage]:
        return [d for d in self.deltas if isinstance(d, Usage)]


async def outcome(model: Model, request: ModelRequest = HELLO, *, within: float = GUARD) -> Outcome:
    """Ask and read to the end."""
    result = Outcome()
    with anyio.fail_after(within):
        try:
            async with model.stream(request) as answer:
                async for deltas in answer:
                    assert deltas, "a batch is never empty"
                    result.batches += 1
                    result.deltas.extend(deltas)
            result.calls, result.finish_reason = answer.calls, answer.finish_reason
        except ModelError as error:
            result.failed = error
    return result


@dataclass
class Naps:
    """Stands for sleeping between attempts."""

    slept: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def client(
    up: Upstream, naps: Naps | None = None, *, api_key: str = KEY, **changes: Any
) -> AsyncIterator[OpenAIModel]:
    """A model at the upstream, with changes to its `RequestPolicy`; waits between attempts take no time."""
    http = HttpClient()
    config = ProviderConfig(name="Testing", base_url=f"{up.url}/v1", api_key=api_key, key_name="TEST_API_KEY")
    policy = RequestPolicy(
        Timeouts(connect=GUARD, first_token=GUARD, idle=GUARD, stalled=GUARD),
        attempts=3,
        sleep=naps or Naps(),
        jitter=lambda: 0.0,
    )
    info = ModelInfo("testing/test-model", "Test model", "Testing", abilities=frozenset({"tools", "images"}))
    try:
        yield OpenAIModel(info, config, "test-model", http, FakeClock(), replace(policy, **changes))
    finally:
        await http.aclose()


@asynccontextmanager
async def client_at(url: str, **policy: Any) -> AsyncIterator[OpenAIModel]:
    """A model at an address where there may be no server."""
    http = HttpClient()
    try:
        config = ProviderConfig(name="Mine", base_url=url)
        yield OpenAIModel(ModelInfo("a/b", "b", "a"), config, "b", http, FakeClock(), RequestPolicy(**policy))
    finally:
        await http.aclose()


def joined(deltas: Sequence[Event]) -> list[Event]:
    """Neighboring deltas of one kind put together, and those of calls that are written at the same time, call by call:
    what any cutting of the same bytes has in common."""
    result: list[Event] = []
    for delta in deltas:
        at = len(result) - 1
        if isinstance(delta, ToolDelta) and delta.name is None:
            while at >= 0 and isinstance(other := result[at], ToolDelta) and other.call_id != delta.call_id:
                at -= 1
        merged = merge(result[at], delta) if at >= 0 else None
        if merged is None:
            result.append(delta)
        else:
            result[at] = merged
    return result
