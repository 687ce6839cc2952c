"""SQL for push subscriptions and the outbox of messages to them."""

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.core.ids import OwnerId, SubscriptionId
from holdfast.core.run import Run
from holdfast.ports.store import PushKind, PushMessage, PushSubscription
from holdfast.storage.sql.statements import Statements
from holdfast.storage.sql.tables import PUSH_SUBSCRIPTIONS, PUSHES


def _add(kind: PushKind) -> str:
    """The switch of a subscription is the column that is named like the kind."""
    return f"""
        INSERT INTO pushes ({PUSHES.columns})
        SELECT id, ?, owner, ?, ?, ?, ?, ?, 0 FROM push_subscriptions WHERE owner = ? AND {kind}
        ON CONFLICT ({PUSHES.key}) DO UPDATE SET
            kind = excluded.kind, created_at = excluded.created_at, due_at = excluded.due_at, attempts = 0
    """


_ADD: Final[Mapping[PushKind, str]] = {"done": _add("done"), "failed": _add("failed"), "approval": _add("approval")}


class SqlPushRows(Statements):
    def push_subscription(self, pid: SubscriptionId) -> PushSubscription | None:
        return self._select_one(PUSH_SUBSCRIPTIONS, "WHERE id = ?", pid)

    def push_subscription_at(self, endpoint: str) -> PushSubscription | None:
        return self._select_one(PUSH_SUBSCRIPTIONS, "WHERE endpoint = ?", endpoint)

    def push_subscriptions(self, owner: OwnerId) -> Sequence[PushSubscription]:
        return self._select(PUSH_SUBSCRIPTIONS, "WHERE owner = ? ORDER BY created_at, id", owner)

    def has_push_subscriptions(self) -> bool:
        return bool(self._db.fetchall("SELECT 1 FROM push_subscriptions LIMIT 1"))

    def put_push_subscription(self, subscription: PushSubscription) -> None:
        self._db.execute(PUSH_SUBSCRIPTIONS.upsert, *PUSH_SUBSCRIPTIONS.encode(subscription))

    def drop_push_subscription(self, pid: SubscriptionId) -> None:
        self._db.execute("DELETE FROM pushes WHERE subscription_id = ?", pid)
        self._db.execute("DELETE FROM push_subscriptions WHERE id = ?", pid)

    def add_push(self, kind: PushKind, tag: str, run: Run) -> None:
        now = self._db.now
        self._db.execute(_ADD[kind], tag, kind, run.session_id, run.id, now, now, run.owner)

    def due_pushes(self, by: float, limit: int) -> Sequence[PushMessage]:
        return self._select(PUSHES, f"WHERE due_at <= ? ORDER BY due_at, {PUSHES.key} LIMIT ?", by, limit)

    def next_push(self) -> float | None:
        ((due_at,),) = self._db.fetchall("SELECT min(due_at) FROM pushes")
        return None if due_at is None else float(due_at)

    def push(self, pid: SubscriptionId, tag: str) -> PushMessage | None:
        return self._select_one(PUSHES, "WHERE subscription_id = ? AND tag = ?", pid, tag)

    def put_push(self, message: PushMessage) -> None:
        self._db.execute(PUSHES.upsert, *PUSHES.encode(message))

    def drop_push(self, pid: SubscriptionId, tag: str) -> None:
        self._db.execute("DELETE FROM pushes WHERE subscription_id = ? AND tag = ?", pid, tag)
