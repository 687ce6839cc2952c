"""Sends the outbox of notifications, and removes devices whose login has ended. Any node sends any message: it claims
the row first, and notes the outcome after.

The rows are complete whatever a node knows. It only remembers whether there are subscriptions, to look into the outbox
whenever something has changed. Without subscriptions it looks at intervals.
"""

import json
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

import anyio

from holdfast.core.errors import first_error
from holdfast.core.ids import SessionId
from holdfast.core.titles import first_words
from holdfast.engine.node_context import NodeContext
from holdfast.engine.signals import SUBSCRIBED, wait_for
from holdfast.engine.transactions import approvals, notifications
from holdfast.engine.transactions.notifications import Delivery
from holdfast.ports.push import PushResult, PushService
from holdfast.ports.store import PushKind, Tx

log = logging.getLogger("holdfast.engine")

_AT_ONCE: Final = 16  # Messages that are claimed and sent together
_MAX_TITLE: Final = 120  # Characters of a chat's title in a message
_ACTIVITY: Final = "sending notifications"


def encode_payload(kind: PushKind | Literal["test"], tag: str, sid: SessionId | None, title: str) -> bytes:
    """What the service worker reads (`web/src/service-worker/main.ts`). An empty title is not shown. `asks`: a question
    that is answered in words. It is no kind of its own, which an earlier worker would not show."""
    asks = {"asks": True} if kind == "approval" and approvals.wants_answer(tag) else {}
    content = {"kind": kind, "tag": tag, "session": sid, "title": title[:_MAX_TITLE], **asks}
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")


@dataclass(slots=True, eq=False)
class PushSender:
    _node: NodeContext
    _service: PushService
    _has_subscriptions: bool = field(default=False, init=False)

    async def run(self) -> None:
        """Runs as long as the engine."""
        signals = self._node.hub.signals
        while True:
            changed, subscribed = signals.event_for(("changed", None)), signals.event_for(SUBSCRIBED)
            pause = self._node.settings.sweep_interval
            try:
                pause = min(pause, await self.tick())
                self._node.outages.worked(_ACTIVITY)
            except Exception as error:  # noqa: BLE001 - notifications may fail, and runs go on
                cause = first_error(error)
                self._node.outages.failed(_ACTIVITY, cause if isinstance(cause, Exception) else error)
            await wait_for(changed if self._has_subscriptions else subscribed, pause)

    async def tick(self) -> float:
        """Send what is due. Returns after how many seconds the next message is due."""

        def look(tx: Tx) -> tuple[float, float | None, bool]:
            return tx.now, tx.next_push(), tx.has_push_subscriptions()

        while True:
            now, due_at, self._has_subscriptions = await self._node.store.read(look)
            if due_at is None:
                return float("inf")
            if due_at > now:
                return due_at - now
            claim = partial(notifications.claim, limit=_AT_ONCE, seconds=self._node.settings.push_claim)
            deliveries = await self._node.store.transact(claim)
            async with anyio.create_task_group() as tasks:
                for delivery in deliveries:
                    tasks.start_soon(self._deliver, delivery)

    async def _deliver(self, delivery: Delivery) -> None:
        message, subscription = delivery.message, delivery.subscription
        if subscription.credential is not None and not self._service.accepts_credential(subscription.credential):
            result = PushResult("gone", "its login has ended")
        else:
            title = (delivery.title or first_words(delivery.asked)) if subscription.shows_title else ""
            payload = encode_payload(message.kind, message.tag, message.session_id, title)
            result = await self._service.send(subscription, payload, tag=message.tag, ttl=delivery.ttl)
        if result.outcome != "sent":
            log.info("a notification was not sent (%s): %s", result.outcome, result.reason)
        note = partial(notifications.finish, claimed=message, result=result)
        await self._node.retry_storage(lambda: self._node.store.transact(note))
