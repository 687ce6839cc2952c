"""The contracts of the journal and the wake-ups over a real Redis, and a Redis that is full or has lost something."""

from collections.abc import AsyncIterator

import pytest
import redis

from holdfast.agents.scripted_agent import Hang, Meet, Say
from holdfast.core.errors import JournalPrunedError, StorageFullError
from holdfast.core.events import RunEnded, TextDelta, entry
from holdfast.core.ids import RunId
from holdfast.core.run import Recovery, Run
from holdfast.ports.journal import Append
from holdfast.storage.postgres import PostgresConfig, PostgresWakeups
from holdfast.storage.redis import RedisConfig, RedisJournal, RedisWakeups, health_check
from holdfast.testing.contracts import JournalContract, MakeJournal, MakeWakeups, WakeupsContract, opening
from holdfast.testing.contracts.samples import adding
from tests.harness import World, running, texts

RUN = RunId("run_1")


@pytest.fixture
async def journal(redis_place: RedisConfig) -> AsyncIterator[RedisJournal]:
    journal = RedisJournal(redis_place)
    yield journal
    await journal.close()


class TestRedisJournal(JournalContract):
    @pytest.fixture
    def make_journal(self, redis_place: RedisConfig) -> MakeJournal:
        return opening(lambda: RedisJournal(redis_place, keep=3600.0))


class TestRedisWakeups(WakeupsContract):
    @pytest.fixture
    def make_wakeups(self, redis_place: RedisConfig, place: PostgresConfig) -> MakeWakeups:
        return opening(lambda: RedisWakeups(redis_place, PostgresWakeups(place)))


@pytest.mark.anyio
async def test_settled_events_go_by_themselves_and_open_ones_stay(redis_place: RedisConfig) -> None:
    """A settled journal expires, and is then pruned and not empty; one that is not sealed does not expire."""
    journal = RedisJournal(redis_place, keep=3600.0)
    sealed = Append(RUN, 1, [entry(1, TextDelta("a")), entry(2, RunEnded("complete"))], seals=True)
    await journal.append([sealed, adding("run_2", 1, "b")])
    await journal.settled([RUN, RunId("run_2")])
    with redis.Redis.from_url(redis_place.url) as db:
        assert 3_500 < db.ttl("holdfast:run:run_1:events") <= 3_600
        assert db.ttl("holdfast:run:run_2:events") == -1
        db.pexpire("holdfast:run:run_1:events", 0)
    with pytest.raises(JournalPrunedError):
        await journal.read(RUN)
    assert (await journal.heads([RUN]))[RUN].sealed
    await journal.close()


@pytest.mark.anyio
async def test_a_full_redis_refuses_and_loses_nothing(journal: RedisJournal, redis_place: RedisConfig) -> None:
    """Without memory an append is a StorageFullError of which nothing was written; with memory again it is taken."""
    append = adding(RUN, 1, "a")
    with redis.Redis.from_url(redis_place.url) as db:
        db.config_set("maxmemory", 1)
        try:
            with pytest.raises(StorageFullError):
                await journal.append([append])
        finally:
            db.config_set("maxmemory", 0)
    assert list(await journal.append([append])) == [None]


def test_doctor_says_what_a_commit_is_worth(redis_place: RedisConfig) -> None:
    """`always` is well; `everysec`, `no`, a file that is not written, and eviction each need attention and say why."""

    def looked() -> dict[str, tuple[bool, str]]:
        return {seen.what: (seen.ok, seen.text) for seen in health_check.examine(redis_place)}

    assert looked()["journal: appendfsync"] == (True, "always: every event is on disk before it is shown")
    with redis.Redis.from_url(redis_place.url) as db:
        try:
            for setting, value, told in (
                ("appendfsync", "everysec", "the last second or two"),
                ("appendfsync", "no", "half a minute"),
                ("appendonly", "no", "since the last snapshot"),
            ):
                db.config_set(setting, value)
                ok, text = looked()["journal: appendfsync"]
                assert not ok
                assert told in text
            db.config_set("maxmemory-policy", "allkeys-lru")
            ok, text = looked()["journal: maxmemory-policy"]
            assert not ok
            assert "noeviction" in text
        finally:
            db.config_set("appendonly", "yes")
            db.config_set("appendfsync", "always")
            db.config_set("maxmemory-policy", "noeviction")
    (away,) = health_check.examine(RedisConfig("redis://127.0.0.1:1/0"))
    assert not away.ok
    assert "cannot be used" in away.text


async def three_interrupted(journal: RedisJournal, *script: Say) -> tuple[World, list[Run]]:
    """Three runs in sessions of their own, and a crash after their second event."""
    world = World()
    world.journal = journal
    async with running([*script, Meet("here"), Hang()], world) as it:
        runs = [await it.send() for _ in range(3)]
        for run in runs:
            await it.collect(run.id, until=2)
        await it.crash()
    return world, runs


@pytest.mark.anyio
async def test_scripts_that_redis_has_forgotten_are_told_again(journal: RedisJournal, redis_place: RedisConfig) -> None:
    """X1: after a restart Redis knows no script; the append is done, and once."""
    for n in (1, 2, 3):
        assert list(await journal.append([adding(RUN, n, "a")])) == [None]
        with redis.Redis.from_url(redis_place.url) as db:
            db.script_flush()
    assert [found.seq for found in await journal.read(RUN)] == [1, 2, 3]
    assert (await journal.fence({RUN: 2}))[RUN].last_seq == 3


@pytest.mark.anyio
@pytest.mark.parametrize("lost", ["events", "head", "head events"])
async def test_a_run_whose_journal_was_thrown_away_ends_and_spoils_no_other(
    journal: RedisJournal, redis_place: RedisConfig, lost: str
) -> None:
    """J1, X3: under `allkeys-lru` Redis throws away what it likes. The run's session stays usable and is not busy, and
    what is left of others is theirs."""
    world, runs = await three_interrupted(journal, Say("half "), Say("more"))
    with redis.Redis.from_url(redis_place.url) as db:
        for kind in lost.split():
            assert db.delete(f"holdfast:run:{runs[1].id}:{kind}") == 1
    async with running((), world) as it:
        for run in runs:
            view = await it.engine.sessions.get(run.session_id)
            assert view.active_run is None
            await it.answer(run.session_id)
        for run in (runs[0], runs[2]):
            assert (await it.row(run.id)).status == "interrupted"
            assert texts((await it.answer(run.session_id)).parts).startswith("half ")
        row = await it.row(runs[1].id)
        assert (row.status, row.lease) == ("interrupted", None)
        assert row.recovery == (None if lost == "head" else Recovery("none"))


@pytest.mark.anyio
async def test_a_sealed_journal_that_was_thrown_away_is_looked_for(
    journal: RedisJournal, redis_place: RedisConfig
) -> None:
    """J1: it ended, nobody knows how, and it was not settled: that is pending, for this run and no other."""
    world, runs = await three_interrupted(journal, Say("half "))
    await journal.append([Append(runs[1].id, 1, [entry(3, RunEnded("complete"))], seals=True)])
    with redis.Redis.from_url(redis_place.url) as db:
        assert db.delete(f"holdfast:run:{runs[1].id}:events") == 1
    async with running((), world) as it:
        assert [(await it.row(run.id)).is_pending for run in runs] == [False, True, False]
        for run in runs:
            assert (await it.engine.sessions.get(run.session_id)).active_run is None
