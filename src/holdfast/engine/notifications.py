"""Which browsers are sent notifications, and about what. The messages: `engine.transactions.notifications`; who sends
them: `engine.push_sender`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from holdfast.core.errors import NotAllowedError
from holdfast.core.ids import LOCAL, OwnerId, SubscriptionId
from holdfast.engine.node_context import NodeContext
from holdfast.engine.push_sender import encode_payload
from holdfast.engine.signals import SUBSCRIBED
from holdfast.engine.transactions import notifications
from holdfast.ports.push import PushResult, PushService
from holdfast.ports.store import PushSubscription, Tx

_TEST_TTL: Final = 60.0


@dataclass(frozen=True, slots=True)
class PushChoices:
    """What a device is told; None leaves a choice as it is."""

    done: bool | None = None
    failed: bool | None = None
    approval: bool | None = None
    shows_title: bool | None = None

    def applied_to(self, subscription: PushSubscription) -> PushSubscription:
        before = subscription
        return replace(
            before,
            done=before.done if self.done is None else self.done,
            failed=before.failed if self.failed is None else self.failed,
            approval=before.approval if self.approval is None else self.approval,
            shows_title=before.shows_title if self.shows_title is None else self.shows_title,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Notifications:
    _node: NodeContext
    _service: PushService | None  # None: nothing can be sent

    @property
    def service(self) -> PushService:
        if self._service is None:
            raise NotAllowedError("send notifications", "this server does not support it")
        return self._service

    async def public_key(self) -> str:
        return await self.service.public_key()

    async def devices(self, owner: OwnerId = LOCAL) -> Sequence[PushSubscription]:
        return await self._node.store.read(lambda tx: tx.push_subscriptions(owner))

    async def subscribe(
        self,
        endpoint: str,
        p256dh: str,
        auth: str,
        choices: PushChoices,
        *,
        device: str,
        credential: str | None = None,
        owner: OwnerId = LOCAL,
    ) -> PushSubscription:
        """Subscribe a browser, or update its subscription, which keeps what is not chosen. Raises InvalidInputError and
        QuotaExceededError."""
        self.service.check(endpoint, p256dh, auth)
        pid = SubscriptionId(self._node.ids.new("push"))
        keys, everything = (p256dh, auth), (True, True, True, True)
        new = PushSubscription(pid, owner, endpoint, *keys, device, credential, *everything, created_at=0.0)

        def work(tx: Tx) -> PushSubscription:
            old = tx.push_subscription_at(endpoint)
            chosen = new
            if old is not None and old.owner == owner:
                kept = PushChoices(old.done, old.failed, old.approval, old.shows_title)
                chosen = kept.applied_to(new)
            return notifications.subscribe(tx, choices.applied_to(chosen))

        subscription = await self._node.store.transact(work)
        self._node.hub.signals.fire(SUBSCRIBED)
        return subscription

    async def change(self, pid: SubscriptionId, choices: PushChoices, owner: OwnerId = LOCAL) -> PushSubscription:
        def work(tx: Tx) -> PushSubscription:
            changed = choices.applied_to(notifications.get_subscription(tx, pid, owner))
            tx.put_push_subscription(changed)
            return changed

        return await self._node.store.transact(work)

    async def unsubscribe(self, pid: SubscriptionId, owner: OwnerId = LOCAL) -> None:
        await self._node.store.transact(partial(notifications.unsubscribe, pid=pid, owner=owner))

    async def test(self, pid: SubscriptionId, owner: OwnerId = LOCAL) -> PushResult:
        """Send a test message at once, and wait for the answer of the push service."""
        subscription = await self._node.store.read(partial(notifications.get_subscription, pid=pid, owner=owner))
        payload = encode_payload("test", "test", None, "")
        result = await self.service.send(subscription, payload, tag="test", ttl=_TEST_TTL)
        await self._node.store.transact(partial(notifications.note_result, pid=pid, result=result))
        return result
