"""The storage contracts over a real PostgreSQL, and what its store does beyond them: other processes write at the
same time."""

import contextlib
import itertools
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import anyio
import psycopg
import pytest
from anyio import to_thread

from holdfast.core.errors import JournalPrunedError, SchemaTooNewError, StorageUnavailableError
from holdfast.core.ids import LOCAL, FileId, RunId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.parts import TextPart
from holdfast.engine.change_feed import ChangeSubscription
from holdfast.engine.preferences import Preferences
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.signals import Signals
from holdfast.ports.store import Change, ProjectQuery, Store, Tx
from holdfast.storage.postgres import (
    PostgresConfig,
    PostgresJournal,
    PostgresStore,
    PostgresWakeups,
    database_upgrade,
    schema,
)
from holdfast.testing import contracts
from holdfast.testing.contracts import opening
from holdfast.testing.contracts import samples as s
from tests.http.streams import until
from tests.servers import PostgresServer

GUARD = 20.0


class TestPostgresStore(contracts.StoreContract):
    @pytest.fixture
    def make_store(self, place: PostgresConfig) -> contracts.MakeStore:
        return opening(lambda: PostgresStore(place))


class TestPostgresJournal(contracts.JournalContract):
    @pytest.fixture
    def make_journal(self, journal_place: PostgresConfig) -> contracts.MakeJournal:
        return opening(lambda: PostgresJournal(journal_place))


class TestPostgresWakeups(contracts.WakeupsContract):
    @pytest.fixture
    def make_wakeups(self, place: PostgresConfig) -> contracts.MakeWakeups:
        return opening(lambda: PostgresWakeups(place))


@pytest.fixture
async def stores(place: PostgresConfig) -> AsyncIterator[list[PostgresStore]]:
    """Two nodes."""
    made = [PostgresStore(place), PostgresStore(place)]
    yield made
    for store in made:
        await store.close()


async def meet(stores: list[PostgresStore], work: Callable[[Tx], Callable[[], bool]]) -> list[bool]:
    """Run the work in both stores, so that both have read before either writes, at the first attempt. `work` reads, and
    returns what writes."""
    both, results = threading.Barrier(2), list[bool]()

    async def take_part(store: PostgresStore) -> None:
        attempts = itertools.count()

        def attempt(tx: Tx) -> bool:
            write = work(tx)
            if next(attempts) == 0:
                both.wait(GUARD)
            return write()

        results.append(await store.transact(attempt))

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            for store in stores:
                group.start_soon(take_part, store)
    return results


def in_transaction(place: PostgresConfig, name: str) -> bool:
    """Whether a node of this name has a transaction, as the server sees it."""
    with psycopg.connect(place.url) as db:
        query = "SELECT FROM pg_stat_activity WHERE application_name = %s AND xact_start IS NOT NULL"
        return db.execute(query, [name]).fetchone() is not None


@pytest.mark.anyio
@pytest.mark.parametrize("then", ["wrote", "wrote and read"])
async def test_a_node_that_stands_still_in_a_transaction_does_not_keep_its_locks(
    place: PostgresConfig, stores: list[PostgresStore], then: str
) -> None:
    """X2, L7: the server ends the abandoned transaction after the limit; another node goes on with the same run, and
    the node that wakes up has written nothing."""
    await s.put(stores[0], s.session(), s.run(status="running"))
    still = PostgresStore(replace(place, name="holdfast-still", answer_within=2.0))
    stands, may_go_on = threading.Event(), threading.Event()

    def work(tx: Tx) -> None:
        run = tx.run(s.RID)
        assert run is not None
        tx.put_run(replace(run, epoch=7))
        if then == "wrote and read":
            tx.open_runs(s.SID)
        stands.set()
        assert may_go_on.wait(GUARD)

    async def stand_still() -> None:
        with pytest.raises(StorageUnavailableError):
            await still.transact(work)

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(stand_still)
            assert await to_thread.run_sync(stands.wait, GUARD)
            await s.put(stores[0], s.run(status="running", epoch=8))
            await to_thread.run_sync(until, lambda: not in_transaction(place, "holdfast-still"))
            may_go_on.set()
    assert await stores[0].read(lambda tx: tx.run(s.RID)) == s.run(status="running", epoch=8)
    await still.close()


@pytest.mark.anyio
async def test_a_transaction_that_stalled_between_two_messages_is_ended(
    place: PostgresConfig, stores: list[PostgresStore]
) -> None:
    """X2, X5: a node was cut off after it sent a statement and before the Sync message. PostgreSQL itself would wait
    for it without a limit, and claims would skip the locked run."""
    await s.put(stores[0], s.session(), s.run(status="queued"))
    other = PostgresStore(replace(place, answer_within=2.0))
    with contextlib.closing(place.connect()) as stalled:
        with contextlib.suppress(psycopg.OperationalError), stalled.pipeline(), anyio.fail_after(GUARD):
            stalled.execute("BEGIN")
            stalled.execute("SELECT id FROM runs WHERE id = %s FOR UPDATE", (s.RID,))
            while await stores[0].transact(lambda tx: tx.claimable_runs(1)):
                pass  # the server has not run the statement yet
            while not await other.transact(lambda tx: tx.claimable_runs(1)):
                pass
        assert stalled.closed
    await other.close()


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

    assert sorted(await meet(stores, work)) == [False, True]
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
            tx.add_change(Change("run.changed", LOCAL, SessionId(sid)))
            return True

        return write

    assert await meet(stores, work) == [True, True]
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
                return len(tx.renew_leases(Lease(s.NODE, 9.0), [run.id for run in runs], ())) == len(runs)
            tx.put_message(s.message("msg_1"))
            return True

        return write

    assert await meet(stores, work) == [True, True]
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
                tx.put_message(s.message("msg_1", parts=(TextPart("see"), file.part())))
            else:
                for orphan in orphans:
                    tx.drop_file(orphan.id)
            return True

        return write

    assert await meet(stores, work) == [True, True]
    named = await stores[0].read(lambda tx: tx.message(s.message("msg_1").id))
    kept = await stores[0].read(lambda tx: tx.file(FileId("file_1")))
    assert (named is None) or (kept is not None)
    assert sum(store.conflicts for store in stores) == 1


class OpenTransaction:
    """A transaction that has written `write` and commits when `may_end` is set."""

    def __init__(self, write: Callable[[Tx], None]) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()
        self._write = write

    def __call__(self, tx: Tx) -> None:
        self._write(tx)
        tx.changes(0, 9)  # a read sends what was written
        self.began.set()
        assert self.may_end.wait(GUARD)


@pytest.mark.anyio
async def test_a_change_is_shown_when_no_smaller_number_can_still_commit(stores: list[PostgresStore]) -> None:
    """A transaction that began first and is still open holds the feed back; when it commits, both come, in order."""
    first, second = stores
    slow = OpenTransaction(lambda tx: tx.add_change(Change("session.changed", LOCAL, SessionId("ses_early"))))

    async def feed() -> list[str]:
        return [change.session_id for change in await second.read(lambda tx: tx.changes(0, 9))]

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(first.transact, slow)
            assert await to_thread.run_sync(slow.began.wait, GUARD)
            await second.transact(lambda tx: tx.add_change(Change("session.changed", LOCAL, SessionId("ses_late"))))
            assert await feed() == []
            assert await second.read(lambda tx: tx.change_bounds()) == (0, 0)
            assert await second.read(lambda tx: tx.changes_held_back())
            slow.may_end.set()
    assert await feed() == ["ses_early", "ses_late"]
    assert not await second.read(lambda tx: tx.changes_held_back())


@pytest.mark.anyio
async def test_what_was_held_back_is_looked_for_again(stores: list[PostgresStore]) -> None:
    """Who holds it back, a commit of the journal as a rule, tells nobody when it is over."""
    first, second = stores
    slow = OpenTransaction(lambda tx: tx.put_setting(LOCAL, "any", 1))
    reads = itertools.count()

    class Counted:
        generation = second.generation

        async def read(self, work: Callable[[Tx], Any]) -> Any:
            if next(reads) == 3:
                slow.may_end.set()
            return await second.read(work)

    feed = ChangeSubscription(
        cast(Store, Counted()),
        Signals(),
        cast(RunFeed, SimpleNamespace(stopping=False, poll_interval=3600.0)),
        LOCAL,
        None,
    )
    await feed.begin()
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(first.transact, slow)
            assert await to_thread.run_sync(slow.began.wait, GUARD)
            await second.transact(lambda tx: tx.add_change(Change("session.changed", LOCAL, SessionId("ses_late"))))
            found = await feed.next()
    assert found is not None
    assert [change.session_id for change in found.items] == ["ses_late"]


@pytest.mark.anyio
async def test_the_clock_is_the_servers(stores: list[PostgresStore], place: PostgresConfig) -> None:
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
    places = [PostgresConfig(url)] * 8
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda place: database_upgrade.create_or_upgrade(place, schema.STORE), places))
    with psycopg.connect(url) as db:
        assert db.execute("SELECT n FROM holdfast.version").fetchall() == [(len(schema.STORE),)]


@pytest.mark.anyio
async def test_the_upgrade_makes_tags_searchable(postgres: PostgresServer) -> None:
    """Sessions that were tagged before tags were searched are found by them, with and without a title."""
    place = PostgresConfig(postgres.database("tags"))
    async with opening(lambda: PostgresStore(place))() as store:
        titled = s.session("ses_titled", title="The pier", tags=("harbor", "to-do"))
        await store.transact(lambda tx: s.write(tx, [titled, s.session("ses_untitled", title="", tags=("harbor",))]))
    with psycopg.connect(place.url, autocommit=True) as db:
        old = "UPDATE holdfast.docs SET text = 'The pier', words = array_to_tsvector(ARRAY['the', 'pier'])"
        db.execute(f"{old} WHERE session_id = 'ses_titled'")
        db.execute("DELETE FROM holdfast.docs WHERE session_id = 'ses_untitled'")
        # of later versions
        db.execute("DROP INDEX holdfast.runs_used; DROP TABLE holdfast.erased_usage; DROP TABLE holdfast.shares")
        db.execute("ALTER TABLE holdfast.runs DROP COLUMN steers; DROP TABLE holdfast.cancelled_keys")
        db.execute("DROP TABLE holdfast.pushes; DROP TABLE holdfast.push_subscriptions")
        db.execute(
            "DROP TABLE holdfast.projects, holdfast.project_files, holdfast.drafts, holdfast.prompts, holdfast.personas"
        )
        db.execute("ALTER TABLE holdfast.messages DROP COLUMN persona")
        db.execute("UPDATE holdfast.version SET n = 4")
    async with opening(lambda: PostgresStore(place))() as store:
        hits = await store.read(lambda tx: tx.search(LOCAL, "harbor", 10, None))
        assert {hit.session.id for hit in hits} == {"ses_titled", "ses_untitled"}
        (hit,) = await store.read(lambda tx: tx.search(LOCAL, "pier to-do", 10, None))
        assert hit.excerpt == "The pier #harbor #to-do"


def test_a_schema_of_a_newer_version_is_refused(postgres: PostgresServer) -> None:
    """An older node does not start on what it does not know, and changes nothing."""
    url = postgres.database("newer")
    database_upgrade.create_or_upgrade(PostgresConfig(url), schema.STORE)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE holdfast.version SET n = 99")
    with pytest.raises(SchemaTooNewError, match="99"):
        PostgresStore(PostgresConfig(url))


def test_a_server_that_is_not_there_is_said_in_a_sentence() -> None:
    """Without a server there is one error with the reason, and no password in it."""
    with pytest.raises(StorageUnavailableError) as caught:
        PostgresStore(PostgresConfig("postgresql://holdfast:secret@127.0.0.1:1/none"))
    assert "refused" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.anyio
async def test_marks_of_purged_runs_do_not_grow_for_ever(journal_place: PostgresConfig) -> None:
    """However many runs are erased, a bounded number of marks is kept, those of the newest runs."""
    async with opening(lambda: PostgresJournal(journal_place))() as journal:
        await journal.append([s.adding(s.RID, 1, "word")])
        for first in range(0, 15_000, 3000):
            await journal.purge([RunId(f"gone_{n:05}") for n in range(first, first + 3000)])
        with pytest.raises(JournalPrunedError):
            await journal.read(RunId("gone_14999"))
        assert len(await journal.read(s.RID)) == 1
    with psycopg.connect(journal_place.url) as db:
        assert db.execute("SELECT count(*) FROM holdfast_journal.heads").fetchone() == (10_001,)


@pytest.mark.anyio
async def test_a_damaged_record_loses_only_what_follows_it(journal_place: PostgresConfig) -> None:
    """J7: of a row whose bytes were changed on disk, the records before the damaged one are still read."""
    journal = PostgresJournal(journal_place)
    await journal.append([s.adding(s.RID, 1, "word 1", "word 2", "word 3")])
    await journal.append([s.adding(s.RID, 4, "word 4")])
    with psycopg.connect(journal_place.url, autocommit=True) as db:
        db.execute(
            "UPDATE holdfast_journal.log SET frames = set_byte(frames, length(frames) - 5, 0) "
            "WHERE run = 'run_1' AND last_seq = 3"
        )
    assert [found.seq for found in await journal.read(s.RID)] == [1, 2]
    await journal.close()


@pytest.mark.anyio
async def test_two_nodes_change_one_setting_and_both_changes_are_kept(stores: list[PostgresStore]) -> None:
    """A2: both read the setting before either writes it; the one that loses reads it again."""
    both = threading.Barrier(2)

    async def add(store: PostgresStore, name: str) -> None:
        attempts = itertools.count()

        def change(stored: Any) -> Any:
            if next(attempts) == 0:
                both.wait(GUARD)
            return {**(stored or {}), name: True}

        await Preferences(store).update("any", change)

    for round_ in range(2):  # the first inserts the row, the second changes it
        both.reset()
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as group:
                for at, store in enumerate(stores):
                    group.start_soon(add, store, f"{round_}-{at}")
    assert (await Preferences(stores[0]).settings())["any"] == dict.fromkeys(["0-0", "0-1", "1-0", "1-1"], True)


@pytest.mark.anyio
async def test_the_upgrade_lists_the_projects_of_sessions(postgres: PostgresServer) -> None:
    """The projects that sessions named before there were rows of them are there, once each."""
    place = PostgresConfig(postgres.database("projects"))
    named = [s.session("ses_a", project="Garden"), s.session("ses_b", project="Garden", archived=True)]
    gone = s.session("ses_gone", project="Gone", deleted_at=2.0)
    async with opening(lambda: PostgresStore(place))() as store:
        await store.transact(lambda tx: s.write(tx, [*named, gone, s.session("ses_c"), s.session("ses_d", project="")]))
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute(
            "DROP TABLE holdfast.projects, holdfast.project_files, holdfast.drafts, holdfast.prompts, holdfast.personas"
        )
        db.execute("ALTER TABLE holdfast.messages DROP COLUMN persona")
        db.execute("UPDATE holdfast.version SET n = 9")
    async with opening(lambda: PostgresStore(place))() as store:
        (found,) = await store.read(lambda tx: tx.projects(ProjectQuery(LOCAL)))
        assert (found.name, found.settings, found.archived) == ("Garden", None, False)
        assert found.id.startswith("prj_")
