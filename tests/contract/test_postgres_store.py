"""What PostgreSQL's store has to do beyond the contract: other processes write at the same time."""

import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import anyio
import psycopg
import pytest
from anyio import to_thread

from holdfast.core.errors import SchemaTooNew, StorageUnavailable
from holdfast.core.events import TextDelta, entry
from holdfast.core.ids import LOCAL, FileId, RunId, SessionId
from holdfast.core.parts import Text
from holdfast.core.run import Lease
from holdfast.engine.changes import ChangeSubscription
from holdfast.engine.feed import Feed
from holdfast.engine.hub import Signals
from holdfast.ports import Append, Store, Tx
from holdfast.storage.postgres import Place, PostgresJournal, PostgresStore, schema
from holdfast.testing.contracts import samples as s
from tests.servers import PostgresServer

GUARD = 20.0


@pytest.fixture
async def stores(place: Place) -> AsyncIterator[list[PostgresStore]]:
    """Two nodes."""
    made = [PostgresStore(place), PostgresStore(place)]
    yield made
    for store in made:
        await store.close()


def meeting(work: Callable[[Tx], Callable[[], bool]]) -> Callable[[], Callable[[Tx], bool]]:
    """Works that have both read before either writes, at the first attempt. `work` reads, and returns what writes."""
    both = threading.Barrier(2)

    def make() -> Callable[[Tx], bool]:
        first = [True]

        def run(tx: Tx) -> bool:
            write = work(tx)
            if first[0]:
                first[0] = False
                both.wait(GUARD)
            return write()

        return run

    return make


@pytest.mark.anyio
async def test_two_nodes_that_find_a_session_free_cannot_both_take_it(stores: list[PostgresStore]) -> None:
    """P4, A3: both look and find no open run, and write different rows: one is done again and finds the other's."""
    await s.put(stores[0], s.session())
    names = iter(["run_a", "run_b", "run_c"])

    def work(tx: Tx) -> Callable[[], bool]:
        free = not tx.open_runs(s.SID)

        def write() -> bool:
            if free:
                tx.put_run(s.run(next(names), status="running"))
            return free

        return write

    make, took = meeting(work), list[bool]()

    async def take(store: PostgresStore) -> None:
        took.append(await store.transact(make()))

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            for store in stores:
                group.start_soon(take, store)
    assert sorted(took) == [False, True]
    assert len(await stores[0].read(lambda tx: tx.open_runs(s.SID))) == 1
    assert sum(store.conflicts for store in stores) == 1


@pytest.mark.anyio
async def test_different_sessions_are_in_nobodys_way(stores: list[PostgresStore]) -> None:
    """P4: transactions of different sessions at the same time are each done once."""
    await s.put(stores[0], s.session("ses_a"), s.session("ses_b"))
    sessions = iter(["ses_a", "ses_b"])

    def work(tx: Tx) -> Callable[[], bool]:
        sid = next(sessions)
        tx.open_runs(SessionId(sid))

        def write() -> bool:
            tx.put_run(s.run(f"run_{sid}", sid))
            tx.add_change("run.changed", LOCAL, SessionId(sid))
            return True

        return write

    make = meeting(work)
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            for store in stores:
                group.start_soon(store.transact, make())
    assert [store.conflicts for store in stores] == [0, 0]


@pytest.mark.anyio
async def test_a_renewal_is_in_nobodys_way(stores: list[PostgresStore]) -> None:
    """P4: a node renews all its leases at once, and no writer in those sessions is done again for it."""
    runs = [s.run(f"run_{n}", status="running", lease=Lease(s.NODE, 1.0), rank=n) for n in range(20)]
    await s.put(stores[0], s.session(), *runs)
    roles = iter(["owner", "writer"])

    def work(tx: Tx) -> Callable[[], bool]:
        role = next(roles)
        tx.open_runs(s.SID)

        def write() -> bool:
            if role == "owner":
                return len(tx.renew(Lease(s.NODE, 9.0), [run.id for run in runs], ())) == len(runs)
            tx.put_message(s.message("msg_1"))
            return True

        return write

    make = meeting(work)
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            for store in stores:
                group.start_soon(store.transact, make())
    assert [store.conflicts for store in stores] == [0, 0]
    assert {run.lease for run in await stores[0].read(lambda tx: tx.open_runs(s.SID))} == {Lease(s.NODE, 9.0)}


@pytest.mark.anyio
async def test_a_file_that_is_being_sent_is_not_dropped_as_an_orphan(stores: list[PostgresStore]) -> None:
    """A1: one node drops files that no message names while another accepts a message that names one: it stays."""
    file = s.stored_file("file_1")
    await s.put(stores[0], s.session(), file)
    roles = iter(["sweeper", "sender"])

    def work(tx: Tx) -> Callable[[], bool]:
        role = next(roles, "again")
        orphans = tx.orphan_files(99.0, 9)
        found = tx.file(FileId("file_1"))

        def write() -> bool:
            if role == "sender" or (role == "again" and found is not None and not orphans):
                tx.put_message(s.message("msg_1", parts=(Text("see"), file.part())))
            else:
                for orphan in orphans:
                    tx.drop_file(orphan.id)
            return True

        return write

    make = meeting(work)
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            for store in stores:
                group.start_soon(store.transact, make())
    named = await stores[0].read(lambda tx: tx.message(s.message("msg_1").id))
    kept = await stores[0].read(lambda tx: tx.file(FileId("file_1")))
    assert (named is None) or (kept is not None)
    assert sum(store.conflicts for store in stores) == 1


@pytest.mark.anyio
async def test_a_change_is_shown_when_no_smaller_number_can_still_commit(
    stores: list[PostgresStore], place: Place
) -> None:
    """A transaction that began first and is still open holds the feed back; when it commits, both come, in order."""
    first, second = stores
    began, may_end = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        tx.add_change("session.changed", LOCAL, SessionId("ses_early"))
        tx.changes(0, 9)  # sent, and not only in the pipe
        began.set()
        assert may_end.wait(GUARD)

    async def feed() -> list[str]:
        return [change.session_id for change in await second.read(lambda tx: tx.changes(0, 9))]

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(first.transact, slow)
            assert await to_thread.run_sync(began.wait, GUARD)
            await second.transact(lambda tx: tx.add_change("session.changed", LOCAL, SessionId("ses_late")))
            assert await feed() == []
            assert await second.read(lambda tx: tx.change_bounds()) == (0, 0)
            assert await second.read(lambda tx: tx.changes_held_back())
            may_end.set()
    assert await feed() == ["ses_early", "ses_late"]
    assert not await second.read(lambda tx: tx.changes_held_back())


@pytest.mark.anyio
async def test_what_was_held_back_is_looked_for_again(stores: list[PostgresStore], place: Place) -> None:
    """Who holds it back, a commit of the journal as a rule, tells nobody when it is over."""
    first, second = stores
    began, may_end = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        tx.put_setting(LOCAL, "any", 1)
        tx.settings(LOCAL)
        began.set()
        assert may_end.wait(GUARD)

    looks = 0

    class Counted:
        generation = second.generation

        async def read(self, work: Callable[[Tx], Any]) -> Any:
            nonlocal looks
            looks += 1
            if looks > 3:
                may_end.set()
            return await second.read(work)

    feed = ChangeSubscription(
        cast(Store, Counted()), Signals(), cast(Feed, SimpleNamespace(stopping=False, poll=3600.0)), LOCAL, None
    )
    await feed.begin()
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(first.transact, slow)
            assert await to_thread.run_sync(began.wait, GUARD)
            await second.transact(lambda tx: tx.add_change("session.changed", LOCAL, SessionId("ses_late")))
            found = await feed.next()
    assert found is not None
    assert [change.session_id for change in found.items] == ["ses_late"]


@pytest.mark.anyio
async def test_the_clock_is_the_servers(stores: list[PostgresStore], place: Place) -> None:
    """Leases are judged by one clock, which stands still within a transaction."""
    with psycopg.connect(place.url) as db:
        row = db.execute("SELECT extract(epoch FROM clock_timestamp())::double precision").fetchone()
    assert row is not None
    first, again = await stores[0].transact(lambda tx: (tx.now, tx.now))
    assert first == again
    assert 0 <= first - row[0] < GUARD


def test_nodes_may_start_together(postgres: PostgresServer) -> None:
    """Eight nodes at an empty database make one schema, and none is refused."""
    url = postgres.database("together")
    places = [Place(url)] * 8
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda place: schema.prepare(place, schema.STORE), places))
    with psycopg.connect(url) as db:
        assert db.execute("SELECT n FROM holdfast.version").fetchall() == [(len(schema.STORE),)]


def test_a_schema_of_a_newer_version_is_refused(postgres: PostgresServer) -> None:
    """An older node does not start on what it does not know, and changes nothing."""
    url = postgres.database("newer")
    schema.prepare(Place(url), schema.STORE)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE holdfast.version SET n = 99")
    with pytest.raises(SchemaTooNew, match="99"):
        PostgresStore(Place(url))


def test_a_server_that_is_not_there_is_said_in_a_sentence() -> None:
    """Without a server there is one error with the reason, and no password in it."""
    with pytest.raises(StorageUnavailable) as caught:
        PostgresStore(Place("postgresql://holdfast:secret@127.0.0.1:1/none"))
    assert "refused" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.anyio
async def test_a_damaged_record_loses_only_what_follows_it(journal_place: Place) -> None:
    """J7: of a row whose bytes were changed on disk, the records before the damaged one are still read."""
    journal = PostgresJournal(journal_place)
    run = RunId("run_1")
    await journal.append([Append(run, 1, [entry(n, TextDelta(f"word {n}")) for n in (1, 2, 3)])])
    await journal.append([Append(run, 1, [entry(4, TextDelta("word 4"))])])
    with psycopg.connect(journal_place.url, autocommit=True) as db:
        db.execute(
            "UPDATE holdfast_journal.log SET frames = set_byte(frames, length(frames) - 5, 0) "
            "WHERE run = 'run_1' AND last_seq = 3"
        )
    assert [found.seq for found in await journal.read(run)] == [1, 2]
    await journal.close()
