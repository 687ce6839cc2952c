"""Push subscriptions, and the outbox of messages to them."""

from dataclasses import replace

import pytest

from holdfast.core.errors import StorageError
from holdfast.core.ids import SubscriptionId
from holdfast.ports.store import Store, Tx
from holdfast.testing.contracts import samples as s


async def outbox(store: Store) -> list[tuple[str, str, str]]:
    found = await store.read(lambda tx: tx.due_pushes(float("inf"), 99))
    return sorted((each.subscription_id, each.tag, each.kind) for each in found)


class PushOutbox:
    async def test_subscriptions_are_found_by_id_endpoint_and_owner(self, store: Store) -> None:
        """An endpoint belongs to one subscription; those of an owner come in the order of their creation."""
        assert not await store.read(lambda tx: tx.has_push_subscriptions())
        first, second = s.push_subscription("push_2", created_at=1.0), s.push_subscription("push_1", created_at=2.0)
        other = s.push_subscription("push_3", owner=s.OTHER)
        await s.put(store, second, other, first)
        assert await store.read(lambda tx: tx.has_push_subscriptions())
        assert list(await store.read(lambda tx: tx.push_subscriptions(first.owner))) == [first, second]
        assert await store.read(lambda tx: tx.push_subscription_at(other.endpoint)) == other
        assert await store.read(lambda tx: tx.push_subscription_at("https://push.example/none")) is None
        changed = replace(first, done=False, shows_title=False, failure="gone", failed_at=3.0)
        await s.put(store, changed)
        assert await store.read(lambda tx: tx.push_subscription(first.id)) == changed
        with pytest.raises(StorageError):
            await s.put(store, s.push_subscription("push_4", endpoint=first.endpoint))

    async def test_a_message_is_added_for_each_subscription_that_wants_it(self, store: Store) -> None:
        """Of the owner alone, once per tag; without a subscription nothing is written."""
        run = s.run()
        await s.put(store, s.session(), run)
        await store.transact(lambda tx: tx.add_push("done", run.id, run))
        assert await outbox(store) == []
        quiet = s.push_subscription("push_2", done=False)
        await s.put(store, s.push_subscription("push_1"), quiet, s.push_subscription("push_3", owner=s.OTHER))
        await store.transact(lambda tx: tx.add_push("done", run.id, run))
        await store.transact(lambda tx: tx.add_push("approval", "apr_1", run))
        both = [("push_1", "apr_1", "approval"), ("push_2", "apr_1", "approval")]
        assert await outbox(store) == [both[0], ("push_1", run.id, "done"), both[1]]
        (message,) = [each for each in await store.read(lambda tx: tx.due_pushes(1e12, 9)) if each.kind == "done"]
        assert (message.session_id, message.run_id, message.owner) == (s.SID, run.id, run.owner)
        assert message.due_at == message.created_at

    async def test_a_newer_message_with_a_tag_replaces_the_older(self, store: Store) -> None:
        """It is due at once, however often the older one was tried."""
        run = s.run()
        await s.put(store, s.session(), run, s.push_subscription("push_1"))
        await s.put(store, s.push_message("push_1", kind="failed", attempts=5, due_at=1e12))
        assert await store.read(lambda tx: tx.next_push()) == 1e12
        await store.transact(lambda tx: tx.add_push("done", run.id, run))
        message = await store.read(lambda tx: tx.push(SubscriptionId("push_1"), run.id))
        assert message is not None
        assert (message.kind, message.attempts) == ("done", 0)
        assert message.due_at < 1e12

    async def test_messages_are_due_in_the_order_of_their_time(self, store: Store) -> None:
        """Up to the limit; `next_push` is the earliest."""
        assert await store.read(lambda tx: tx.next_push()) is None
        await s.put(store, s.session(), s.push_subscription("push_1"))
        times = {"c": 5.0, "a": 7.0, "b": 5.0}
        await s.put(store, *(s.push_message("push_1", tag=tag, due_at=due_at) for tag, due_at in times.items()))

        async def due(by: float, limit: int = 9) -> list[str]:
            return [each.tag for each in await store.read(lambda tx: tx.due_pushes(by, limit))]

        assert await due(4.9) == []
        assert await due(5.0) == ["b", "c"]
        assert await due(9.0) == ["b", "c", "a"]
        assert await due(9.0, 1) == ["b"]
        assert await store.read(lambda tx: tx.next_push()) == 5.0

    async def test_messages_go_with_their_subscription_and_session(self, store: Store) -> None:
        """Those of others stay."""
        rows: list[s.Row] = [
            s.push_subscription("push_1"),
            s.push_subscription("push_2"),
            s.session(),
            s.session("ses_2"),
        ]
        await s.put(store, *rows, s.push_message("push_1"), s.push_message("push_2", tag="x"))
        await s.put(store, s.push_message("push_2", tag="y", session_id="ses_2"))

        def drop(tx: Tx) -> None:
            tx.drop_push_subscription(SubscriptionId("push_1"))

        await store.transact(drop)
        assert await outbox(store) == [("push_2", "x", "done"), ("push_2", "y", "done")]
        await store.transact(lambda tx: tx.drop_session(s.SID))
        assert await outbox(store) == [("push_2", "y", "done")]
        await store.transact(lambda tx: tx.drop_push(SubscriptionId("push_2"), "y"))
        assert await outbox(store) == []
