"""A push service in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio

from holdfast.core.errors import InvalidInputError
from holdfast.engine.transactions.notifications import MAX_AGE
from holdfast.ports.push import PushResult
from holdfast.ports.store import PushSubscription
from tests.storage_interceptors import GUARD


@dataclass
class RecordingPush:
    """A push service that answers as it is told: `results` in order, then "sent"."""

    results: list[PushResult] = field(default_factory=list)
    sent: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)  # Endpoint, tag, content
    ended: set[str] = field(default_factory=set)  # Credentials
    gate: anyio.Event | None = None
    begun: anyio.Event = field(default_factory=anyio.Event)
    news: Callable[[], None] = lambda: None

    async def public_key(self) -> str:
        return "key"

    def check(self, endpoint: str, p256dh: str, auth: str) -> None:
        if not endpoint.startswith("https:"):
            raise InvalidInputError("endpoint", "must begin with https:")

    def accepts_credential(self, credential: str) -> bool:
        return credential not in self.ended

    async def send(self, subscription: PushSubscription, payload: bytes, *, tag: str, ttl: float) -> PushResult:
        assert 0 < ttl <= MAX_AGE
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        self.sent.append((subscription.endpoint, tag, json.loads(payload)))
        self.news()
        return self.results.pop(0) if self.results else PushResult("sent")

    async def count(self, wanted: int) -> None:
        """Until so many were sent."""
        with anyio.fail_after(GUARD):
            while len(self.sent) < wanted:
                news = anyio.Event()
                self.news = news.set
                await news.wait()

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(tag, content["kind"]) for _, tag, content in self.sent]
