"""What follows from a run's end is done by one node, and not by each."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from holdfast.agents.scripted import AgentTable, Say, ScriptedAgent
from holdfast.core.parts import Text
from holdfast.core.session import Message, Session
from holdfast.engine.engine import Engine
from holdfast.engine.settings import Settings
from holdfast.engine.titles import Titles
from holdfast.ports import Titler
from holdfast.storage.postgres import Place, PostgresJournal, PostgresStore, PostgresWakeups
from holdfast.system import RandomIds, SystemClock
from tests.http.streams import GUARD
from tests.servers import PostgresServer


class Counting:
    def __init__(self) -> None:
        self.asked = 0

    async def title(self, messages: Sequence[Message]) -> str:
        self.asked += 1
        return f"Title {self.asked}"


@asynccontextmanager
async def node(url: str) -> AsyncIterator[Engine]:
    store = PostgresStore(Place(url))
    journal, wakeups = PostgresJournal(Place(url, "holdfast_journal")), PostgresWakeups(Place(url))
    engine = Engine(
        store=store,
        journal=journal,
        wakeups=wakeups,
        agents=AgentTable({"chat": ScriptedAgent([Say("hello")])}),
        clock=SystemClock(),
        ids=RandomIds(),
        settings=Settings(poll=0.5),
    )
    async with anyio.create_task_group() as tasks:
        await tasks.start(engine.run)
        yield engine
        engine.stop()
    for part in (wakeups, journal, store):
        await part.close()


@pytest.mark.anyio
async def test_a_session_is_named_once(durable_postgres: PostgresServer) -> None:
    """P8: both nodes hear that a run has ended, and the one that ended it asks for a title."""
    url, titler = durable_postgres.database("titles"), Counting()

    async def the_titler(_: Session) -> Titler:
        return titler

    with anyio.fail_after(GUARD):
        async with node(url) as first, node(url) as second, anyio.create_task_group() as tasks:
            for engine in (first, second):
                tasks.start_soon(Titles(engine.service, the_titler).run)
            await anyio.wait_all_tasks_blocked()
            sessions = [await engine.service.create_session() for engine in (first, second) * 4]
            changes = first.service.watch_changes(None)
            await changes.begin()
            for session in sessions:
                await first.service.submit(session.id, [Text("hi")])
            unnamed = {session.id for session in sessions}
            while unnamed:
                for sid in list(unnamed):
                    if (await first.service.session(sid)).session.titled_by != "nobody":
                        unnamed.discard(sid)
                if unnamed:
                    await changes.next()
            tasks.cancel_scope.cancel()
    assert titler.asked == len(sessions)
