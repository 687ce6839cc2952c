"""Atomicity, isolation and durability of transactions."""

import contextlib
from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest

from holdfast.core.ids import LOCAL, FactId, FileId, MessageId, RunId, SessionId, SubscriptionId
from holdfast.core.session import Session
from holdfast.ports.store import Change, SessionQuery, Store, Tx
from holdfast.testing.contracts import samples as s
from holdfast.testing.contracts.store_rows import FULL, PLAIN, reread


class DeliberateError(Exception):
    pass


SID, RID = SessionId("ses_full"), RunId("run_0")


def everything(tx: Tx) -> object:
    """All that a transaction can change of the rows that `full_house` makes, as one comparable value."""
    return (
        [reread(tx, row) for row in FULL],
        tx.sessions(SessionQuery(LOCAL)),
        tx.deleted_sessions(9),
        tx.message(MessageId("msg_1")),
        tx.children(SID, None),
        tx.run_with_key(LOCAL, SID, "key"),
        tx.key_cancelled_at(SID, "gone"),
        tx.open_runs(SID),
        tx.all_open_runs(9),
        tx.claimable_runs(9),
        tx.open_approvals(RID),
        tx.digest_in_use("digest of file_0"),
        {file.id for file in tx.orphan_files(99.0, 9)},
        set(tx.queued_purges(9)),
        tx.changes(0, 9),
        tx.change_bounds(),
        dict(tx.settings(LOCAL)),
        tx.dirty_turns(SID, 9),
        tx.facts(LOCAL, 9),
        [fact.id for fact in tx.facts(LOCAL, 9, text="something")],
        tx.search(LOCAL, "heron", 9, None),
        tx.search(LOCAL, "kingfisher", 9, None),
    )


def full_house(tx: Tx) -> None:
    titled = s.session(SID, title="The heron"), s.message("msg_0", SID, text="a kingfisher"), s.run(RID, SID, key="key")
    s.write(tx, [*PLAIN, *titled])
    tx.put_setting(LOCAL, "x", 1)
    tx.queue_purges([RunId("run_9")])
    tx.add_change(Change("session.changed", LOCAL, SID))


def change_everything(tx: Tx) -> None:
    new = s.session(title="heron"), s.message("msg_1", text="another kingfisher"), s.run(), s.stored_file("file_1")
    s.write(tx, [*FULL, *new, s.fact("fct_1")])
    tx.put_setting(LOCAL, "x", 0)
    tx.drop_dirty_turns(SID, 2**41)
    tx.drop_purges([RunId("run_9")])
    tx.queue_purges([RunId("run_8")])
    tx.add_change(Change("run.changed", LOCAL, SID, RID))


def drop_everything(tx: Tx) -> None:
    tx.put_setting(LOCAL, "x", None)
    tx.drop_fact(FactId("fct_0"))
    tx.drop_messages(SID)
    tx.drop_run(RID)
    tx.drop_session(SID)
    tx.drop_file(FileId("file_0"))
    tx.drop_push_subscription(SubscriptionId("push_0"))
    tx.drop_purges([RunId("run_9")])
    tx.trim_changes(0)


class Transactions:
    async def test_reads_see_the_transactions_own_writes(self, store: Store) -> None:
        """Inside a transaction every read, by id, list or search, sees what was written before it."""

        def work(tx: Tx) -> tuple[object, object, object]:
            before = everything(tx)
            full_house(tx)
            inside = everything(tx)
            return before, inside, everything(tx)

        before, inside, again = await store.transact(work)
        assert before != inside == again
        assert await store.read(everything) == inside

    @pytest.mark.parametrize("spoil", [change_everything, drop_everything])
    async def test_an_exception_leaves_nothing_of_the_transaction(
        self, make_store: s.MakeStore, spoil: Callable[[Tx], None]
    ) -> None:
        """P1, A1, M11, P7: writes of every kind, erasures among them, are gone when the work raises, now and after
        reopening; what was accepted before is there, its indexes included. The exception is passed on."""
        error = DeliberateError()
        async with make_store() as store:
            await store.transact(full_house)
            before = await store.read(everything)

            def work(tx: Tx) -> None:
                spoil(tx)
                assert everything(tx) != before
                raise error

            with pytest.raises(DeliberateError) as caught:
                await store.transact(work)
            assert caught.value is error
            assert await store.read(everything) == before
        async with make_store() as store:
            assert await store.read(everything) == before

    async def test_the_store_goes_on_after_an_exception(self, store: Store) -> None:
        """An exception inside a transaction or a read is the caller's, and does not stand in the way of the next."""

        def fail(tx: Tx) -> None:
            tx.session(s.SID)
            raise DeliberateError

        for call in (store.transact, store.read, store.transact):
            with pytest.raises(DeliberateError):
                await call(fail)
        await s.put(store, s.session(title="second"))
        assert await store.read(lambda tx: tx.session(s.SID)) == s.session(title="second")

    async def test_a_write_inside_read_leaves_no_trace(self, store: Store) -> None:
        """`read` never writes, whether the adapter refuses the attempt or forgets it."""
        with contextlib.suppress(Exception):
            await store.read(lambda tx: tx.put_session(s.session()))
        assert await store.read(lambda tx: tx.session(s.SID)) is None
        await s.put(store, s.session())
        assert await store.read(lambda tx: tx.session(s.SID)) == s.session()

    async def test_concurrent_changes_of_one_session_are_all_kept(self, store: Store) -> None:
        """P4: read-and-write transactions at the same time are serialized; none fails and none is lost."""
        await s.put(store, s.session(version=0))

        def increment(tx: Tx) -> None:
            found = tx.session(s.SID)
            assert found is not None
            tx.put_session(replace(found, version=found.version + 1))

        with anyio.fail_after(s.GUARD):
            async with anyio.create_task_group() as group:
                for _ in range(40):
                    group.start_soon(store.transact, increment)
        assert await store.read(lambda tx: tx.session(s.SID)) == s.session(version=40)

    async def test_a_reader_never_sees_a_mix_of_two_writes(self, store: Store) -> None:
        """P1: what one transaction writes in several rows and indexes, a read sees wholly or not at all."""
        other = SessionId("ses_2")

        def move(version: int) -> Callable[[Tx], None]:
            first, second = s.session(version=version), s.session(other, version=version)
            return lambda tx: s.write(tx, (first, s.message("msg_1", text=str(version)), second))

        def look(tx: Tx) -> tuple[Session | None, str, Session | None]:
            first, found = tx.session(s.SID), tx.message(MessageId("msg_1"))
            assert found is not None
            return first, str(found.parts), tx.session(other)

        await store.transact(move(0))
        seen: set[int] = set()
        done = anyio.Event()

        async def watch() -> None:
            while not done.is_set():
                first, text, second = await store.read(look)
                assert first is not None
                assert second is not None
                assert first.version == second.version
                assert f"'{first.version}'" in text
                seen.add(first.version)

        with anyio.fail_after(s.GUARD):
            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                group.start_soon(watch)
                for version in range(1, 101):
                    await store.transact(move(version))
                done.set()
        assert seen

    async def test_a_cancelled_transaction_is_whole_or_absent(self, store: Store) -> None:
        """A caller that is cancelled leaves all of the transaction or nothing of it, and a store that goes on."""
        for n in range(5):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await s.put(store, s.session(f"ses_{n}"), s.message(f"msg_{n}", f"ses_{n}"))

        def halves(tx: Tx) -> list[bool]:
            both = [(tx.session(SessionId(f"ses_{n}")), tx.message(MessageId(f"msg_{n}"))) for n in range(5)]
            return [(session is None) != (message is None) for session, message in both]

        with anyio.fail_after(s.GUARD):
            assert not any(await store.transact(halves))

    async def test_the_store_has_a_clock_and_may_know_its_room(self, store: Store) -> None:
        """`now` is a plain number in transactions and in reads; `free_bytes` and
        `reusable_bytes` answer without raising."""
        assert isinstance(await store.transact(lambda tx: tx.now), float)
        assert isinstance(await store.read(lambda tx: tx.now), float)
        assert (store.free_bytes() or 1) > 0
        assert await store.reusable_bytes() >= 0

    async def test_the_generation_outlives_the_process(self, make_store: s.MakeStore) -> None:
        """The same files have the same generation, so that cursors of the change feed stay good over a restart."""
        async with make_store() as store:
            generation = store.generation
            assert generation
        async with make_store() as store:
            assert store.generation == generation
