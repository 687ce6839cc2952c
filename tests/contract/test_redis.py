"""The contracts of the journal and the wake-ups over a real Redis."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import redis

from holdfast.core.errors import JournalPruned, StorageFull
from holdfast.core.events import RunEnded, TextDelta, entry
from holdfast.core.ids import RunId
from holdfast.ports import Append, Journal, Wakeups
from holdfast.storage.redis import RedisJournal, RedisPlace, RedisWakeups, checkup
from holdfast.testing.contracts import JournalContract, MakeJournal, MakeWakeups, WakeupsContract

RUN = RunId("run_1")


class TestRedisJournal(JournalContract):
    @pytest.fixture
    def make_journal(self, redis_place: RedisPlace) -> MakeJournal:
        @asynccontextmanager
        async def make() -> AsyncIterator[Journal]:
            journal = RedisJournal(redis_place, keep=3600.0)
            try:
                yield journal
            finally:
                await journal.close()

        return make


class TestRedisWakeups(WakeupsContract):
    @pytest.fixture
    def make_wakeups(self, redis_place: RedisPlace) -> MakeWakeups:
        @asynccontextmanager
        async def make() -> AsyncIterator[Wakeups]:
            wakeups = RedisWakeups(redis_place)
            try:
                yield wakeups
            finally:
                await wakeups.close()

        return make


@pytest.mark.anyio
async def test_settled_events_go_by_themselves_and_open_ones_stay(redis_place: RedisPlace) -> None:
    """A settled journal expires, and is then pruned and not empty; one that is not sealed does not expire."""
    journal = RedisJournal(redis_place, keep=3600.0)
    sealed = Append(RUN, 1, [entry(1, TextDelta("a")), entry(2, RunEnded("complete"))], seals=True)
    await journal.append([sealed, Append(RunId("run_2"), 1, [entry(1, TextDelta("b"))])])
    await journal.settled([RUN, RunId("run_2")])
    with redis.Redis.from_url(redis_place.url) as db:
        assert 3_500 < db.ttl("holdfast:run:run_1:events") <= 3_600
        assert db.ttl("holdfast:run:run_2:events") == -1
        db.pexpire("holdfast:run:run_1:events", 0)
    with pytest.raises(JournalPruned):
        await journal.read(RUN)
    assert (await journal.heads([RUN]))[RUN].sealed
    await journal.close()


@pytest.mark.anyio
async def test_a_full_redis_refuses_and_loses_nothing(redis_place: RedisPlace) -> None:
    """Without memory an append is a StorageFull of which nothing was written; with memory again it is taken."""
    journal = RedisJournal(redis_place)
    append = Append(RUN, 1, [entry(1, TextDelta("a"))])
    with redis.Redis.from_url(redis_place.url) as db:
        db.config_set("maxmemory", 1)
        try:
            with pytest.raises(StorageFull):
                await journal.append([append])
        finally:
            db.config_set("maxmemory", 0)
    assert list(await journal.append([append])) == [None]
    await journal.close()


def test_doctor_says_what_a_commit_is_worth(redis_place: RedisPlace) -> None:
    """`always` is well; `everysec`, `no`, a file that is not written, and eviction each need attention and say why."""

    def looked() -> dict[str, tuple[bool, str]]:
        return {seen.what: (seen.ok, seen.text) for seen in checkup.examine(redis_place)}

    assert looked()["journal: appendfsync"] == (True, "always: every event is on its disk before it is shown")
    with redis.Redis.from_url(redis_place.url) as db:
        try:
            for setting, value, told in (
                ("appendfsync", "everysec", "the last second or two"),
                ("appendfsync", "no", "half a minute"),
                ("appendonly", "no", "since its last snapshot"),
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
    (away,) = checkup.examine(RedisPlace("redis://127.0.0.1:1/0"))
    assert not away.ok
    assert "cannot be used" in away.text
