"""Notifications as an outbox: the transaction that ends a run or stores a question also stores the messages about it.
`engine.push_sender` sends them; the page leaves those out whose chat is visible (`web/src/service-worker/main.ts`).
Each function is one transaction, or part of one.

A message is sent at least once. A repeat has the same tag, and replaces the first one on the device.
"""

from dataclasses import dataclass, replace
from typing import Final

from holdfast.core.errors import NotFoundError, QuotaExceededError
from holdfast.core.ids import ApprovalId, OwnerId, SubscriptionId
from holdfast.core.parts import Part
from holdfast.core.run import Run
from holdfast.core.session import Session
from holdfast.ports.push import PushResult
from holdfast.ports.store import PushKind, PushMessage, PushSubscription, Tx

MAX_AGE: Final = 24 * 3600.0  # Seconds after which a message is no news, here and at the push service
MAX_SUBSCRIPTIONS: Final = 50
_MAX_ATTEMPTS: Final = 20
_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 3600.0  # Seconds between attempts, which double
_KINDS: Final[dict[str, PushKind]] = {"complete": "done", "failed": "failed", "interrupted": "failed"}
"""By the status of an ended run. Whoever cancels a run knows of it."""


def note_end(tx: Tx, run: Run, session: Session) -> None:
    """A run of the session has ended."""
    kind = _KINDS.get(run.status)
    if kind is not None and _is_news(run, session):
        tx.add_push(kind, run.id, run)


def note_question(tx: Tx, run: Run, aid: ApprovalId) -> None:
    """The run asks and waits for the answer."""
    session = tx.session(run.session_id)
    if session is not None and _is_news(run, session):
        tx.add_push("approval", aid, run)


def _is_news(run: Run, session: Session) -> bool:
    """Whether devices are told of the run: an attached run has a client that is connected, programs ask for theirs, and
    of a temporary chat nothing is left to open. The same rule for hidden tabs: `web/src/core/hidden-tab-monitor.ts`."""
    is_shown = session.deleted_at is None and session.is_kept and not session.is_from_api
    return run.lifetime == "detached" and is_shown


@dataclass(frozen=True, slots=True)
class Delivery:
    """A claimed message and what its text is made of."""

    message: PushMessage
    subscription: PushSubscription
    title: str  # Of the chat
    asked: tuple[Part, ...]  # The user's message, if the chat has no title yet
    ttl: float  # Seconds until the message is no news


def claim(tx: Tx, limit: int, seconds: float) -> list[Delivery]:
    """Take messages that are due, so that nobody else sends them for so long. Those that are no news are dropped."""
    found = []
    for message in tx.due_pushes(tx.now, limit):
        delivery = _delivery(tx, message, tx.now + seconds)
        if delivery is None:
            tx.drop_push(message.subscription_id, message.tag)
        else:
            tx.put_push(delivery.message)
            found.append(delivery)
    return found


def _delivery(tx: Tx, message: PushMessage, until: float) -> Delivery | None:
    subscription, session = tx.push_subscription(message.subscription_id), tx.session(message.session_id)
    if subscription is None or session is None or session.deleted_at is not None:
        return None
    if tx.now - message.created_at >= MAX_AGE or message.attempts >= _MAX_ATTEMPTS:
        return None
    if message.kind == "approval":
        approval = tx.approval(ApprovalId(message.tag))
        if approval is None or approval.decision is not None:
            return None
    run = None if session.title else tx.run(message.run_id)
    asked = None if run is None else tx.message(run.user_message_id)
    claimed = replace(message, due_at=until, attempts=message.attempts + 1)
    parts = () if asked is None else asked.parts
    return Delivery(claimed, subscription, session.title, parts, message.created_at + MAX_AGE - tx.now)


def finish(tx: Tx, claimed: PushMessage, result: PushResult) -> None:
    """Note the outcome of an attempt. A message that was replaced or claimed again meanwhile stays."""
    if tx.push(claimed.subscription_id, claimed.tag) == claimed:
        if result.outcome == "retry":
            pause = min(_FIRST_PAUSE * 2 ** (claimed.attempts - 1), _LONGEST_PAUSE)
            pause = max(pause, min(result.retry_after or 0.0, _LONGEST_PAUSE))
            tx.put_push(replace(claimed, due_at=tx.now + pause))
        else:
            tx.drop_push(claimed.subscription_id, claimed.tag)
    note_result(tx, claimed.subscription_id, result)


def note_result(tx: Tx, pid: SubscriptionId, result: PushResult) -> None:
    subscription = tx.push_subscription(pid)
    if subscription is None:
        return
    if result.outcome == "gone":
        tx.drop_push_subscription(pid)
    elif result.outcome == "sent":
        tx.put_push_subscription(replace(subscription, succeeded_at=tx.now, failure=None))
    else:
        tx.put_push_subscription(replace(subscription, failed_at=tx.now, failure=result.reason))


# ---- subscriptions ----


def subscribe(tx: Tx, new: PushSubscription) -> PushSubscription:
    """Insert a subscription, or replace the one with its endpoint, which keeps its id and history."""
    old = tx.push_subscription_at(new.endpoint)
    if old is not None and old.owner == new.owner:
        history = (old.created_at, old.succeeded_at, old.failed_at, old.failure)
        created_at, succeeded_at, failed_at, failure = history
        new = replace(
            new, id=old.id, created_at=created_at, succeeded_at=succeeded_at, failed_at=failed_at, failure=failure
        )
    else:
        if old is not None:
            tx.drop_push_subscription(old.id)
        if len(tx.push_subscriptions(new.owner)) >= MAX_SUBSCRIPTIONS:
            raise QuotaExceededError("devices with notifications", MAX_SUBSCRIPTIONS, "Remove one that is not used.")
        new = replace(new, created_at=tx.now)
    tx.put_push_subscription(new)
    return new


def get_subscription(tx: Tx, pid: SubscriptionId, owner: OwnerId) -> PushSubscription:
    found = tx.push_subscription(pid)
    if found is None or found.owner != owner:
        raise NotFoundError("device", pid)
    return found


def unsubscribe(tx: Tx, pid: SubscriptionId, owner: OwnerId) -> None:
    tx.drop_push_subscription(get_subscription(tx, pid, owner).id)
