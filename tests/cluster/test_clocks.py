"""Nodes whose clocks are off by more than anything that is timed here: two engines on one real PostgreSQL. What is due
is made so by the store's clock (`later`), and only that counts."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from anyio import to_thread

from holdfast.agents.scripted_agent import CallTool, Hang, Meet, Say
from holdfast.core.ids import LOCAL, FileId, RunId
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.ports.journal import Journal
from holdfast.ports.store import SessionQuery, Store
from holdfast.ports.wakeups import Wakeups
from holdfast.storage.in_memory import InMemoryWakeups
from holdfast.storage.postgres import PostgresConfig, PostgresJournal, PostgresStore
from holdfast.storage.postgres.files import PostgresFiles
from holdfast.testing import CountingIds, FakeClock
from tests.harness import GUARD, Running, Script, running, texts
from tests.servers import PostgresServer

pytestmark = pytest.mark.anyio

LIMIT = 30.0
"""Of a lease, and of everything else that has one here."""
OFF = 50.0
TIMED: dict[str, Any] = {
    "lease_time": LIMIT,
    "lease_renewal": 0.05,
    "retention": LIMIT,
    "answer_within": LIMIT,
    "unused_file_grace": LIMIT,
    "recovery": RecoveryPolicy(give_up_after=LIMIT),
}


@dataclass(frozen=True)
class Skewed:
    off: float

    def now(self) -> float:
        return time.time() + self.off


@dataclass
class Shared:
    """Storage of a cluster, which has a clock of its own."""

    url: str
    clock: FakeClock = field(default_factory=FakeClock)
    ids: CountingIds = field(default_factory=CountingIds)
    wakeups: Wakeups = field(default_factory=InMemoryWakeups)

    @asynccontextmanager
    async def open(self, *, cluster: bool = False) -> AsyncIterator[tuple[Store, Journal]]:
        store, journal = (
            PostgresStore(PostgresConfig(self.url)),
            PostgresJournal(PostgresConfig(self.url, "holdfast_journal")),
        )
        try:
            yield store, journal
        finally:
            with anyio.CancelScope(shield=True):
                await journal.close()
                await store.close()

    def later(self, table: str, column: str, ident: str) -> None:
        """As if the limit had passed since."""
        with psycopg.connect(self.url, autocommit=True) as db:
            change = f"UPDATE holdfast.{table} SET {column} = {column} - %s WHERE id = %s"
            assert db.execute(change.encode(), [LIMIT, ident]).rowcount == 1

    def now(self) -> float:
        with psycopg.connect(self.url, autocommit=True) as db:
            row = db.execute("SELECT extract(epoch FROM clock_timestamp())::double precision").fetchone()
        assert row is not None
        return float(row[0])


@pytest.fixture(scope="session")  # modules may be taken up twice, and a database is created once
def world(durable_postgres: PostgresServer) -> Shared:
    return Shared(durable_postgres.database("clocks"))


@pytest.fixture(params=[OFF, -OFF], ids=["worker-ahead", "worker-behind"])
def off(request: pytest.FixtureRequest) -> float:
    return float(request.param)


@asynccontextmanager
async def two_nodes(
    world: Shared, off: float, script: Script, **options: Any
) -> AsyncIterator[tuple[Running, Running]]:
    """One that executes, and one that only looks. Their clocks are off to different sides."""
    options = {**TIMED, **options}
    async with (
        running(script, world, cluster=True, clock=Skewed(off), **options) as worker,
        running((), world, cluster=True, clock=Skewed(-off), max_runs=0, **options) as other,
    ):
        yield worker, other


async def die(node: Running) -> None:
    """Like `kill -9`, and what its threads were still writing, such as a renewed lease, is over."""
    await node.crash()
    await node.store.inner.close()


async def renewed(node: Running, rid: RunId, since: Run) -> Run:
    with anyio.fail_after(GUARD):
        while (run := await node.row(rid)).lease == since.lease and run.connection == since.connection:
            pass
    return run


async def test_a_lease_neither_lapses_early_nor_lives_too_long(world: Shared, off: float) -> None:
    """X2, X3: a run is its worker's while the lease is renewed, and anybody's when it has lapsed, by the store's clock;
    what either node's clock says of it counts for nothing."""
    async with two_nodes(world, off, [Say("half "), Meet("here"), Hang()]) as (worker, other):
        run = await worker.send(await other.new_session())
        await worker.collect(run.id, until=2)
        before = world.now()
        held = await renewed(other, run.id, await other.row(run.id))
        assert held.lease is not None
        assert held.lease.until is not None
        assert before + LIMIT - 1 < held.lease.until < world.now() + LIMIT
        await other.tick()
        await other.engine.sessions.get(run.session_id)
        assert (await other.row(run.id)).status == "running"
        await die(worker)
        await other.tick()
        assert (await other.row(run.id)).status == "running"
        world.later("runs", "lease_until", run.id)
        await other.tick()
        assert (await other.row(run.id)).status == "interrupted"
        assert texts((await other.answer(run.session_id)).parts) == "half "


async def test_an_attached_run_lives_as_long_as_its_connection(world: Shared, off: float) -> None:
    """L3: a client at one node, its run at the other: its line is neither dead at once nor forever."""
    async with two_nodes(world, off, [Say("x"), Meet("here"), Hang()]) as (worker, other):
        run = await other.send(await worker.new_session(), lifetime="attached")
        async with other.engine.connections.attached(run.id):
            await worker.reached("here")
            await renewed(other, run.id, await other.row(run.id))
            await worker.tick()
            assert (await other.row(run.id)).status == "running"
            await die(other)
        world.later("runs", "connection_until", run.id)
        ended = await worker.until(run.id, "cancelled")
        assert ended.reason == "disconnected"


async def test_a_lost_journal_is_sought_for_as_long_as_it_should(world: Shared, off: float) -> None:
    """J4, J6: the give-up age of a pending recovery is counted by the store's clock, whoever looks."""
    async with two_nodes(world, off, [Say("half "), Meet("here"), Hang()]) as (worker, other):
        run = await worker.send(await worker.new_session())
        await worker.reached("here")
        await die(worker)
        other.journal.away = True
        world.later("runs", "lease_until", run.id)
        await other.tick()
        for _ in range(2):
            assert (await other.row(run.id)).is_pending
            await other.tick()
        world.later("runs", "recovery_since", run.id)
        await other.tick()
        given_up = (await other.row(run.id)).recovery
        assert given_up is not None
        assert given_up.state == "none"


async def test_journals_and_questions_are_kept_for_as_long_as_is_said(world: Shared, off: float) -> None:
    """X5: retention and the time to answer count by the store's clock, whichever node wrote and whichever looks."""
    async with two_nodes(world, off, [Say("a"), CallTool("t", asks=True)]) as (worker, other):
        done = await other.send(await other.new_session())
        asked = await worker.until(done.id, "waiting")
        for node in (worker, other):
            await node.tick()
        assert (await other.row(asked.id)).status == "waiting"
        question = await other.question(asked.id)
        world.later("approvals", "created_at", question.id)
        await other.tick()
        assert (await worker.ended(asked.id)).status == "complete"
        for node in (worker, other):
            await node.tick()
        assert not await other.erased(asked.id)
        world.later("runs", "ended_at", asked.id)
        await other.tick()
        assert await other.erased(asked.id)


async def test_a_file_that_was_just_sent_is_not_old(world: Shared, off: float, tmp_path: Path) -> None:
    """A1: a node that is behind, or one that is ahead and sweeps, takes no file away that is about to be sent."""
    files = PostgresFiles(PostgresConfig(world.url), tmp_path)
    async with two_nodes(world, off, [Say("a")], files=files) as (worker, other):
        sent = [await upload(node) for node in (worker, other)]
        for node in (worker, other):
            await node.tick()
        assert await kept(other, sent) == sent
        for fid in sent:
            world.later("files", "created_at", fid)
        await worker.tick()
        assert await kept(other, sent) == []


async def upload(node: Running) -> FileId:
    library = node.engine.attachments
    assert library is not None
    with await to_thread.run_sync(library.begin) as incoming:
        incoming.write(b"tides")
        return (await library.add(incoming, "a.txt", "text/plain")).id


async def kept(node: Running, files: list[FileId]) -> list[FileId]:
    return await node.store.read(lambda tx: [fid for fid in files if tx.file(fid) is not None])


async def test_sessions_are_listed_in_the_order_of_what_happened(world: Shared, off: float) -> None:
    """P6, P7: made and answered at different nodes, sessions stand in the order of their last activity, and none was
    active before it was there."""
    async with two_nodes(world, off, [Say("a")]) as (worker, other):
        sids = [await node.new_session() for node in (worker, other, worker, other)]
        await worker.turn(sids[1])
        await worker.turn(sids[0])
        sids.append(await other.new_session())
        listed = [view.session for view in await worker.engine.sessions.list(SessionQuery(LOCAL, limit=len(sids)))]
        assert [session.id for session in listed] == [sids[n] for n in (4, 0, 1, 3, 2)]
        for session in listed:
            assert session.created_at <= session.updated_at <= world.now()
            for message in await worker.shown(session.id):
                assert session.created_at <= message.created_at
