"""Conversations through nginx while nodes are killed: what every client saw must be gap-free and equal to what is
stored. One wave of it is a test; `python -m tests.cluster` repeats waves."""

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import anyio
from anyio import to_thread

from holdfast.core.events import Entry
from holdfast.core.parts import all_to_json
from holdfast.core.transcript import fold
from tests.cluster.conftest import SHORT_LEASE, Cluster

PATIENCE: Final = 100.0
CONTINUES: Final[dict[str, Any]] = {**SHORT_LEASE, "policy": {"auto_continue": True, "max_resumes": 1000}}
_LOST: Final = (aiohttp.ClientError, TimeoutError, OSError)
_TOKENS: Final = 60


class News:
    """Rung by every event that a client is shown."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def ring(self) -> None:
        rung, self._event = self._event, anyio.Event()
        rung.set()

    async def until(self, good: Callable[[], bool]) -> None:
        while not good():
            await self._event.wait()


@dataclass
class Conversation:
    """A client that sends one turn and follows it to its end, whatever happens to the nodes."""

    name: str
    front: str
    http: aiohttp.ClientSession
    news: News
    rate: float
    entries: list[Entry] = field(default_factory=list)
    answered: int = 0
    reconnects: int = 0
    refusals: Counter[int] = field(default_factory=Counter)
    """Answers that were no stream, by status."""
    sid: str = ""
    rid: str = ""

    @property
    def cursor(self) -> int:
        return self.entries[-1].seq if self.entries else 0

    @property
    def done(self) -> bool:
        return bool(self.entries) and self.entries[-1].ends

    def expected(self) -> str:
        return "".join(f"t{n} " for n in range(_TOKENS)) + "and " + "".join(f"t{n} " for n in range(_TOKENS))

    async def live(self) -> None:
        self.sid = (await self._insist("POST", "/api/sessions", {}))["id"]
        script = [
            {"tokens": _TOKENS, "rate": self.rate},
            {"call": self.name},
            {"say": "and "},
            {"tokens": _TOKENS, "rate": self.rate},
        ]
        sent = await self._insist(
            "POST", f"/api/sessions/{self.sid}/runs", {"input": json.dumps(script)}, {"Idempotency-Key": self.name}
        )
        self.rid = sent["run"]["id"]
        while not self.done:
            with suppress(*_LOST):
                await self._follow()
            self.reconnects += 1
            await anyio.sleep(0.05)

    async def _follow(self) -> None:
        url = f"{self.front}/api/runs/{self.rid}/events"
        async with self.http.get(url, headers={"Last-Event-ID": str(self.cursor)}) as answer:
            rest = b""
            if answer.status != 200:
                self.refusals[answer.status] += 1
                return
            async for piece in answer.content.iter_any():
                *blocks, rest = (rest + piece).split(b"\n\n")
                for block in blocks:
                    if block.startswith(b"id: "):  # neither a comment nor the advice when to come back
                        await self._take(block + b"\n\n")

    async def _take(self, frame: bytes) -> None:
        entry = Entry(int(frame[4 : frame.index(b"\n")]), frame)
        assert entry.seq == self.cursor + 1, f"{self.name}: {entry.seq} after {self.cursor}"
        self.entries.append(entry)
        self.news.ring()
        if entry.type == "approval.requested":  # its node died inside the tool
            asked = json.loads(frame.partition(b"\ndata: ")[2])["approval_id"]
            await self._insist("POST", f"/api/runs/{self.rid}/approvals/{asked}", {"decision": "once"}, good=(200, 409))
            self.answered += 1

    async def _insist(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        good: tuple[int, ...] = (200, 201, 202),
    ) -> Any:
        while True:
            with suppress(*_LOST):
                async with self.http.request(method, self.front + path, json=body, headers=headers) as answer:
                    if answer.status in good:
                        return await answer.json()
                    assert answer.status >= 500, (answer.status, await answer.text())
            await anyio.sleep(0.05)

    async def check(self) -> None:
        told = fold(self.entries)
        shown = (await self._insist("GET", f"/api/sessions/{self.sid}/messages"))["items"][-1]
        while shown["status"] == "streaming":  # sealed, and settled a moment later
            shown = (await self._insist("GET", f"/api/sessions/{self.sid}/messages"))["items"][-1]
        assert shown["status"] == told.status == "complete", (self.name, shown["status"], told.status)
        assert shown["parts"] == all_to_json(told.parts), self.name
        text = "".join(part["text"] for part in shown["parts"] if part["type"] == "text")
        assert text == self.expected(), (self.name, text)
        run = await self._insist("GET", f"/api/runs/{self.rid}")
        while run["status"] == "running":  # its message was shown from the sealed journal: the same moment
            run = await self._insist("GET", f"/api/runs/{self.rid}")
        assert (run["status"], run["last_seq"]) == ("complete", self.cursor), (self.name, run)


@dataclass(frozen=True, slots=True)
class Report:
    events: int
    reconnects: int
    asked: int
    refusals: Counter[int]


async def wave(
    cluster: Cluster, chance: random.Random, *, kills: int, conversations: int = 60, rate: float = 10.0
) -> Report:
    """`kills` nodes die while the conversations go on, at `rate` tokens a second; each comes back a while later."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=30.0)
    prefix = f"{chance.randrange(1 << 40):x}"
    front = await to_thread.run_sync(lambda: cluster.front)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http:
        news = News()
        clients = [Conversation(f"{prefix}-{n}", front, http, news, rate) for n in range(conversations)]
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                for client in clients:
                    group.start_soon(client.live)
                await _kill(cluster, chance, clients, news, kills)
            for client in clients:
                await client.check()
    _check_effects(cluster, clients)
    refusals = sum((client.refusals for client in clients), Counter[int]())
    assert refusals[502] == 0, "two nodes lived all the time, and nginx found none"
    return Report(
        sum(len(client.entries) for client in clients),
        sum(client.reconnects for client in clients),
        sum(client.answered for client in clients),
        refusals,
    )


async def _kill(cluster: Cluster, chance: random.Random, clients: list[Conversation], news: News, kills: int) -> None:
    def so_far() -> int:
        return sum(len(client.entries) for client in clients)

    async def reached(count: int) -> None:
        await news.until(lambda: so_far() >= count or all(client.done for client in clients))

    await news.until(lambda: all(client.entries for client in clients))
    for _ in range(kills):
        await reached(so_far() + chance.randrange(50, 400))
        victim = chance.choice(sorted(cluster.nodes))
        for n, node in cluster.nodes.items():
            assert (await to_thread.run_sync(node.http.get, "/healthz")).status_code == 200, (n, node.complaints)
        await to_thread.run_sync(cluster.nodes[victim].kill)
        await reached(so_far() + chance.randrange(200, 800))
        await to_thread.run_sync(lambda victim=victim: cluster.start(victim, **CONTINUES))  # type: ignore[misc]


def _check_effects(cluster: Cluster, clients: list[Conversation]) -> None:
    """A tool ran once, or a person was asked before it ran again."""
    effects = Counter(effect for node in cluster.nodes.values() for effect in node.effects)
    for client in clients:
        assert 1 <= effects[client.name] <= 1 + client.answered, (client.name, effects[client.name], client.answered)
