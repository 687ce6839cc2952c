"""Asking a model in a test: everything that it gave out, and how it ended."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from holdfast.agents.models.endpoint import Endpoint, Patience
from holdfast.agents.models.http import Http
from holdfast.agents.models.openai import OpenAIModel
from holdfast.agents.models.port import Delta, Model, ModelFailed, ModelInfo, Request, ToolCall, UserSaid
from holdfast.agents.models.retry import RetryPolicy
from holdfast.core.events import Event, ReasoningDelta, TextDelta, Usage, merge
from holdfast.testing.fakes import FakeClock
from tests.upstream import GUARD, Upstream

KEY = "sk-very-secret-0123456789"
HELLO = Request(None, (UserSaid(("Hello",)),))


@dataclass
class Outcome:
    deltas: list[Delta] = field(default_factory=list)
    batches: int = 0
    failed: ModelFailed | None = None
    calls: Sequence[ToolCall] = ()
    finish_reason: str | None = None

    @property
    def text(self) -> str:
        return "".join(d.text for d in self.deltas if isinstance(d, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(d.text for d in self.deltas if isinstance(d, ReasoningDelta))

    @property
    def usage(self) -> list[Usage]:
        return [d for d in self.deltas if isinstance(d, Usage)]


async def outcome(model: Model, request: Request = HELLO, *, within: float = GUARD) -> Outcome:
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
        except ModelFailed as error:
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
async def client(up: Upstream, naps: Naps | None = None, **changes: Any) -> AsyncIterator[OpenAIModel]:
    """A model at the upstream; waits between attempts take no time."""
    http = Http()
    endpoint = Endpoint(
        base_url=f"{up.url}/v1",
        model="test-model",
        provider="Testing",
        api_key=KEY,
        key_name="TEST_API_KEY",
        patience=Patience(connect=GUARD, first_token=GUARD, idle=GUARD, stalled=GUARD),
        retry=RetryPolicy(attempts=3),
    )
    info = ModelInfo("testing/test-model", "Test model", "Testing", abilities=frozenset({"tools", "images"}))
    try:
        yield OpenAIModel(
            info, replace(endpoint, **changes), http, FakeClock(), sleep=naps or Naps(), chance=lambda: 0.0
        )
    finally:
        await http.aclose()


def joined(deltas: Sequence[Event]) -> list[Event]:
    """Neighbouring deltas of one kind put together: what any cutting of the same bytes has in common."""
    result: list[Event] = []
    for delta in deltas:
        merged = merge(result[-1], delta) if result else None
        if merged is None:
            result.append(delta)
        else:
            result[-1] = merged
    return result
