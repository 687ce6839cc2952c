"""The scripted upstream in a thread of its own, for tests that are not asynchronous. Each model has scripts of its own,
so that one upstream serves many tests."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from holdfast.agents.chat.summary_and_title import SUMMARIZE, TITLE
from holdfast.memory.model_extractor import SYSTEM
from tests.upstream import GUARD, End, Exchange, Hang, Head, Script, Upstream, delta, listening, says, sse

Job = Literal["chat", "title", "summary", "memory"]
PROVIDER = "testing"
KEY_NAME = "TEST_API_KEY"
KEY = "sk-very-secret-0123456789"


class ByModel(Upstream):
    """A model without scripts says "Fine.". Below `/hangs` there is no answer at all."""

    def __init__(self) -> None:
        super().__init__()
        self.plays: dict[tuple[str, Job], tuple[Script, ...]] = {}
        self._by: defaultdict[tuple[str, Job], list[Exchange]] = defaultdict(list)

    def script(self, exchange: Exchange) -> Script:
        if exchange.path.startswith("/hangs/"):
            return [Hang()]
        if exchange.method != "POST":
            return [Head(404, {"Content-Length": "0"}, chunked=False)]
        key = _key(exchange)
        self._by[key].append(exchange)
        scripts = self.plays.get(key) or (says("Fine."),)
        return scripts[min(len(self.by(key)), len(scripts)) - 1]

    def by(self, key: tuple[str, Job]) -> list[Exchange]:
        return self._by[key]

    async def asked_by(self, key: tuple[str, Job], count: int) -> Exchange:
        with anyio.fail_after(GUARD):
            while len(found := self.by(key)) < count:
                await self._asked.wait()
        return found[count - 1]

    async def closed_by(self, key: tuple[str, Job], count: int) -> Exchange:
        exchange = await self.asked_by(key, count)
        with anyio.fail_after(GUARD):
            await exchange.closed.wait()
        return exchange

    async def reached(self, gate: str) -> None:
        with anyio.fail_after(GUARD):
            await self.gate(gate).reached.wait()

    async def let(self, gate: str) -> None:
        self.gate(gate).open.set()


def _key(exchange: Exchange) -> tuple[str, Job]:
    asked = exchange.json()
    first = asked["messages"][0]["content"] if "messages" in asked else None
    jobs: dict[str, Job] = {TITLE: "title", SUMMARIZE: "summary", SYSTEM: "memory"}
    return asked["model"], jobs.get(first, "chat") if isinstance(first, str) else "chat"


class ScriptedModelServer:
    """The test's end."""

    def __init__(self, portal: BlockingPortal, up: ByModel) -> None:
        self._portal = portal
        self._up = up

    @property
    def url(self) -> str:
        return f"{self._up.url}/v1"

    def play(self, model: str, *scripts: Script, job: Job = "chat") -> str:
        """One script per request; the last one answers all that follow. The model's id."""
        assert (model, job) not in self._up.plays, "each test has models of its own"
        self._up.plays[model, job] = scripts
        return f"{PROVIDER}/{model}"

    def asked(self, model: str, count: int = 1, job: Job = "chat") -> Any:
        """Wait for request number `count`; its body."""
        return self._portal.call(self._up.asked_by, (model, job), count).json()

    def closed(self, model: str, count: int = 1, job: Job = "chat") -> float:
        """Wait until the connection of that request is closed; when it was, by the monotonic clock."""
        closed_at = self._portal.call(self._up.closed_by, (model, job), count).closed_at
        assert closed_at is not None
        return closed_at

    def count(self, model: str, job: Job = "chat") -> int:
        return len(self._up.by((model, job)))

    def reached(self, gate: str) -> None:
        self._portal.call(self._up.reached, gate)

    def let(self, gate: str) -> None:
        self._portal.call(self._up.let, gate)


@contextmanager
def serve_model() -> Iterator[ScriptedModelServer]:
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(listening(ByModel())) as up:
        yield ScriptedModelServer(portal, up)


def calls(*asked: tuple[str, str, Any], text: str = "") -> Script:
    """An answer that asks for tools: (call id, name, arguments) each."""
    pieces = [
        {"index": n, "id": call_id, "function": {"name": name, "arguments": json.dumps(args)}}
        for n, (call_id, name, args) in enumerate(asked)
    ]
    said = [delta(content=text)] if text else []
    return [Head(), *sse(*said, delta(tool_calls=pieces), delta(finish="tool_calls"), "[DONE]"), End()]
