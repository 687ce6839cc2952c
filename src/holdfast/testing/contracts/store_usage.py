"""Sums over what runs used, by day, model and project."""

import math
from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from holdfast.core.events import Usage
from holdfast.core.ids import LOCAL, RunId, SessionId
from holdfast.core.usage import UsageSum
from holdfast.ports.store import Store, UsageGrouping, UsageQuery
from holdfast.testing.contracts import samples as s

_DAY = 86400.0


async def _sums(
    store: Store, by: UsageGrouping = "model", since: float = 0.0, until: float = 1e12, utc_offset: float = 0.0
) -> list[UsageSum]:
    query = UsageQuery(LOCAL, since, until, by, utc_offset)
    found: Sequence[UsageSum] = await store.read(lambda tx: tx.usage(query))
    return sorted(found, key=lambda each: (each.key, each.model))


@pytest.mark.anyio
class UsageSums:
    async def test_tokens_costs_and_times_are_summed_per_model(self, store: Store) -> None:
        """Tokens without a reported cost are summed apart as well, and a run without a model is its agent's."""
        await s.put(
            store,
            s.session(),
            s.run("a", model="m", usage=Usage(100, 10, 0.5, 40, 4), started_at=10.0, ended_at=12.5),
            s.run("b", model="m", usage=Usage(7, 3, None, 2), started_at=20.0, ended_at=21.0),
            s.run("c", agent="hermes", usage=Usage(1, 2), ended_at=5.0),
            s.run("d", model="m", ended_at=9.0),
            s.run("e", model="m", status="running", started_at=1.0),
            s.run("f", model="m", owner=s.OTHER, usage=Usage(1000, 1000), ended_at=9.0),
        )
        assert await _sums(store) == [
            UsageSum("agent:hermes", "agent:hermes", 1, 1, 2, 0, 0, 0.0, 1, 0, 2, 0.0),
            UsageSum("m", "m", 2, 107, 13, 42, 4, 0.5, 7, 2, 3, 3.5),
        ]

    async def test_the_period_has_its_beginning_and_not_its_end(self, store: Store) -> None:
        runs = [s.run(f"run_{at}", model="m", usage=Usage(at, 0), ended_at=float(at)) for at in (1, 10, 100, 1000)]
        await s.put(store, s.session(), *runs)
        (found,) = await _sums(store, since=10.0, until=1000.0)
        assert (found.runs, found.input_tokens) == (2, 110)
        assert await _sums(store, since=10.0, until=10.0) == []

    async def test_days_begin_at_midnight_of_the_time_zone(self, store: Store) -> None:
        """A day is the number of days since 1970 there. The last moment of a day belongs to it."""
        times = [_DAY - 0.5, _DAY, 2 * _DAY - 0.001, 2 * _DAY + 1]
        await s.put(
            store,
            s.session(),
            *[s.run(f"run_{n}", model="m", usage=Usage(10**n, 0), ended_at=at) for n, at in enumerate(times)],
        )
        assert [(each.key, each.input_tokens) for each in await _sums(store, "day")] == [(0, 1), (1, 110), (2, 1000)]
        earlier = await _sums(store, "day", utc_offset=-1.0)
        assert [(each.key, each.input_tokens) for each in earlier] == [(0, 11), (1, 100), (2, 1000)]
        assert all(type(each.key) is int and type(each.input_tokens) is int for each in earlier)

    async def test_projects_are_those_of_the_sessions(self, store: Store) -> None:
        await s.put(
            store,
            s.session("ses_a", project="garden"),
            s.session("ses_b"),
            s.run("a", "ses_a", model="m", usage=Usage(1, 0), ended_at=1.0),
            s.run("b", "ses_a", model="n", usage=Usage(2, 0), ended_at=1.0),
            s.run("c", "ses_b", model="m", usage=Usage(4, 0), ended_at=1.0),
        )
        found = [(each.key, each.model, each.input_tokens) for each in await _sums(store, "project")]
        assert found == [("", "m", 4), ("garden", "m", 1), ("garden", "n", 2)]
        of_one = UsageQuery(LOCAL, 0.0, math.inf, session_id=SessionId("ses_a"))
        sums: Sequence[UsageSum] = await store.read(lambda tx: tx.usage(of_one))
        assert sorted((each.model, each.input_tokens) for each in sums) == [("m", 1), ("n", 2)]

    async def test_what_erased_runs_used_still_counts(self, store: Store) -> None:
        """Deleting a chat or a turn does not give back what it cost; nothing is counted twice."""
        await s.put(
            store,
            s.session("ses_a", project="garden"),
            s.session("ses_b"),
            s.run("a", "ses_a", model="m", usage=Usage(1, 2, 0.25, 1, 1), started_at=1.0, ended_at=3.0),
            s.run("b", "ses_a", agent="hermes", usage=Usage(4, 0), ended_at=_DAY),
            s.run("c", "ses_b", model="m", usage=Usage(16, 0), ended_at=5.0),
            s.run("d", "ses_b", model="m", ended_at=5.0),
        )
        groupings: tuple[UsageGrouping, ...] = ("day", "model", "project")
        before = [await _sums(store, by) for by in groupings]
        await store.transact(lambda tx: tx.drop_session(SessionId("ses_a")))
        await store.transact(lambda tx: tx.drop_run(s.run("c").id))
        await store.transact(lambda tx: tx.drop_session(SessionId("ses_b")))
        assert [await _sums(store, by) for by in groupings] == before
        await store.transact(lambda tx: tx.trim_erased_usage(_DAY))
        (left,) = await _sums(store)
        assert (left.key, left.input_tokens) == ("agent:hermes", 4)

    async def test_erased_runs_stay_in_their_local_day(self, store: Store) -> None:
        """To the last moment of it, in every time zone, though they are kept by quarters of an hour."""
        offsets = [0.0, 5.75 * 3600, 12.75 * 3600, -9.5 * 3600, 10.5 * 3600]
        midnights = [3 * _DAY - offset for offset in offsets]
        times = sorted({at + shift for at in midnights for shift in (-0.001, 0.0, 0.001, 899.999)})
        await s.put(
            store,
            s.session(),
            *[s.run(f"run_{n}", model="m", usage=Usage(2**n, n), ended_at=at) for n, at in enumerate(times)],
        )
        before = [await _sums(store, "day", utc_offset=offset) for offset in offsets]
        periods = [await _sums(store, since=at, until=at + _DAY) for at in midnights]
        await store.transact(lambda tx: tx.drop_session(s.SID))
        assert [await _sums(store, "day", utc_offset=offset) for offset in offsets] == before
        assert [await _sums(store, since=at, until=at + _DAY) for at in midnights] == periods
        assert all(type(each.key) is int and type(each.input_tokens) is int for each in before[0])

    async def test_runs_that_are_erased_at_the_same_time_are_all_counted(self, store: Store) -> None:
        """They are added to the same row, also in several transactions at once, with and without a reported cost."""
        costs = (None, 0.0, 0.25, None, 0.5, None)
        for n, cost in enumerate(costs):
            run = s.run("run_a", f"ses_{n}", model="m", usage=Usage(10**n, 1, cost, 2, None), ended_at=10.0 + n)
            runs = [replace(run, id=RunId(f"run_{n}{m}"), started_at=float(m)) for m in range(3)]
            await s.put(store, s.session(f"ses_{n}"), *runs)
        before = await _sums(store)
        async with anyio.create_task_group() as group:
            for n in range(len(costs)):
                group.start_soon(store.transact, lambda tx, n=n: tx.drop_session(SessionId(f"ses_{n}")))
        assert await _sums(store) == before
        (found,) = before
        assert (found.runs, found.input_tokens, found.reported_cost) == (18, 333_333, 2.25)
        assert (found.unbilled_input, found.unbilled_output) == (303_003, 9)

    async def test_usage_of_the_longest_names_is_kept(self, store: Store) -> None:
        """Erasing must not fail, however long names are and however badly they can be compressed."""
        model, project = ("".join(chr(0x20000 + n * 7919 % 42_000) for n in range(length)) for length in (500, 200))
        await s.put(
            store,
            s.session(project=project),
            s.run("a", model=model, agent="a" * 41, usage=Usage(2**40, 2**40, 1e-7, 2**40, 2**40), ended_at=10.0),
        )
        (before,) = await _sums(store, "project")
        await store.transact(lambda tx: tx.drop_session(s.SID))
        (found,) = await _sums(store, "project")
        assert replace(found, model=model) == before
        assert model.startswith(found.model)

    async def test_counts_beyond_32_bits_are_exact(self, store: Store) -> None:
        most = 2**40
        runs = [s.run(f"run_{n}", model="m", usage=Usage(most + n, most), ended_at=1.0) for n in range(3)]
        await s.put(store, s.session(), *runs)
        (found,) = await _sums(store)
        assert (found.input_tokens, found.output_tokens) == (3 * most + 3, 3 * most)
