"""A Redis that lost something: scripts after a restart, keys that it threw away for want of memory."""

from collections.abc import AsyncIterator

import pytest
import redis

from holdfast.agents.scripted import Hang, Meet, Say
from holdfast.core.events import RunEnded, TextDelta, entry
from holdfast.core.ids import RunId
from holdfast.ports import Append
from holdfast.storage.redis import RedisJournal, RedisPlace
from tests.harness import World, collect, running, texts

pytestmark = pytest.mark.anyio

RUN = RunId("run_1")


@pytest.fixture
async def journal(redis_place: RedisPlace) -> AsyncIterator[RedisJournal]:
    journal = RedisJournal(redis_place)
    yield journal
    await journal.close()


async def test_scripts_that_redis_has_forgotten_are_told_again(journal: RedisJournal, redis_place: RedisPlace) -> None:
    """X1: after a restart Redis knows no script; the append is done, and once."""
    for n in (1, 2, 3):
        assert list(await journal.append([Append(RUN, 1, [entry(n, TextDelta("a"))])])) == [None]
        with redis.Redis.from_url(redis_place.url) as db:
            db.script_flush()
    assert [found.seq for found in await journal.read(RUN)] == [1, 2, 3]
    assert (await journal.fence({RUN: 2}))[RUN].last_seq == 3


@pytest.mark.parametrize("lost", ["events", "head", "head events"])
async def test_a_run_whose_journal_was_thrown_away_ends_and_spoils_no_other(
    journal: RedisJournal, redis_place: RedisPlace, lost: str
) -> None:
    """J1, X3: under `allkeys-lru` Redis throws away what it likes. The run's session stays usable and is not busy, and
    what is left of others is theirs."""
    world = World()
    world.journal = journal
    async with running([Say("half "), Say("more"), Meet("here"), Hang()], world) as it:
        runs = [await it.send(await it.new_session()) for _ in range(3)]
        for run in runs:
            await collect(it.service, run.id, until=2)
        await it.crash()
    with redis.Redis.from_url(redis_place.url) as db:
        for kind in lost.split():
            assert db.delete(f"holdfast:run:{runs[1].id}:{kind}") == 1
    async with running((), world) as it:
        for run in runs:
            view = await it.service.session(run.session_id)
            assert view.active_run is None
            await it.answer(run.session_id)
        for run in (runs[0], runs[2]):
            assert (await it.row(run.id)).status == "interrupted"
            assert texts((await it.answer(run.session_id)).parts).startswith("half ")
        row = await it.row(runs[1].id)
        assert (row.status, row.recovery, row.lease) == ("interrupted", None, None)


async def test_a_sealed_journal_that_was_thrown_away_is_looked_for(
    journal: RedisJournal, redis_place: RedisPlace
) -> None:
    """J1: it ended, nobody knows how, and it was not settled: that is pending, for this run and no other."""
    world = World()
    world.journal = journal
    async with running([Say("half "), Meet("here"), Hang()], world) as it:
        runs = [await it.send(await it.new_session()) for _ in range(3)]
        for run in runs:
            await collect(it.service, run.id, until=2)
        await it.crash()
    await journal.append([Append(runs[1].id, 1, [entry(3, RunEnded("complete"))], seals=True)])
    with redis.Redis.from_url(redis_place.url) as db:
        assert db.delete(f"holdfast:run:{runs[1].id}:events") == 1
    async with running((), world) as it:
        assert [(await it.row(run.id)).is_pending for run in runs] == [False, True, False]
        for run in runs:
            assert (await it.service.session(run.session_id)).active_run is None
