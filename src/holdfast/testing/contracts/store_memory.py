"""Ledgers, dirty turns and facts."""

from functools import partial

import pytest

from holdfast.core.errors import StorageError
from holdfast.core.ids import LOCAL, FactId, SessionId
from holdfast.core.memory_ledger import RESTS, Ledger
from holdfast.ports.store import Fact, Store
from holdfast.testing.contracts import samples as s


async def found(store: Store, text: str = "", *, prefix: bool = False, limit: int = 99) -> list[str]:
    facts = await store.read(lambda tx: tx.facts(LOCAL, limit, text=text, prefix=prefix))
    return [each.id for each in facts]


class LedgerContract:
    async def test_due_ledgers_come_in_the_order_of_their_time(self, store: Store) -> None:
        """M2: those that are due by a moment, the earliest first, up to the limit; one without a time never."""
        times = {"ses_c": 5.0, "ses_a": 7.0, "ses_b": 5.0, "ses_d": None, "ses_e": RESTS}

        async def due(by: float, limit: int = 9) -> list[str]:
            return [each.session_id for each in await store.read(lambda tx: tx.due_ledgers(by, limit))]

        assert await due(RESTS) == []
        await s.put(store, *(Ledger(SessionId(name), LOCAL, due_at=due_at) for name, due_at in times.items()))
        assert await due(4.9) == []
        assert await due(5.0) == ["ses_b", "ses_c"]
        assert await due(1e300) == ["ses_b", "ses_c", "ses_a"]
        assert await due(RESTS) == ["ses_b", "ses_c", "ses_a", "ses_e"]
        assert await due(RESTS, 3) == ["ses_b", "ses_c", "ses_a"]
        await s.put(store, Ledger(SessionId("ses_b"), LOCAL))
        assert await due(6.0) == ["ses_c"]

    async def test_dirty_turns_are_kept_by_session_and_number(self, store: Store) -> None:
        """M4: turns come in order of their numbers and are dropped up to one of them, of one session alone."""

        async def numbers(sid: str, limit: int = 99) -> list[int]:
            return [turn.n for turn in await store.read(lambda tx: tx.dirty_turns(SessionId(sid), limit))]

        await s.put(store, *map(s.dirty_turn, (11, 2, 9, 1)), s.dirty_turn(1, session_id=SessionId("ses_2")))
        assert await numbers(s.SID) == [1, 2, 9, 11]
        assert await numbers(s.SID, 2) == [1, 2]
        await store.transact(lambda tx: tx.drop_dirty_turns(s.SID, 9))
        assert await numbers(s.SID) == [11]
        assert await numbers("ses_2") == [1]


class FactContract:
    async def test_each_write_of_a_fact_makes_it_the_newest(self, store: Store) -> None:
        """Numbers rise with every write and are never used again, so that a follower sees each change."""
        await s.put(store, s.fact("fct_1"), s.fact("fct_2"), s.fact("fct_3"))
        assert await found(store) == ["fct_3", "fct_2", "fct_1"]
        last = await store.read(lambda tx: tx.facts_after(LOCAL, 0, 9)[-1].n)
        await store.transact(lambda tx: tx.drop_fact(FactId("fct_3")))
        await s.put(store, s.fact("fct_1", text="again"))
        news = await store.read(lambda tx: tx.facts_after(LOCAL, last, 9))
        assert [each.id for each in news] == ["fct_1"]
        assert await found(store) == ["fct_1", "fct_2"]

    async def test_facts_are_paged_in_both_directions(self, store: Store) -> None:
        """Pages have each fact once: newest first by `before`, oldest first by `after`."""
        await s.put(store, *(s.fact(f"fct_{n}", text=f"even {n}" if n % 2 == 0 else f"odd {n}") for n in range(7)))
        ids = [f"fct_{n}" for n in range(7)]

        async def older(last: Fact | None, text: str = "") -> list[Fact]:
            return list(await store.read(lambda tx: tx.facts(LOCAL, 2, text=text, before=last.n if last else None)))

        async def newer(last: Fact | None) -> list[Fact]:
            return list(await store.read(lambda tx: tx.facts_after(LOCAL, last.n if last else 0, 2)))

        assert [each.id for each in await s.pages(older, 2)] == ids[::-1]
        assert [each.id for each in await s.pages(partial(older, text="even"), 2)] == ids[::-2]
        assert [each.id for each in await s.pages(newer, 2)] == ids

    async def test_a_key_has_one_fact_of_an_owner(self, store: Store) -> None:
        """A second fact of a key is refused; the same key of another owner, or after the first is gone, is not."""
        await s.put(store, s.fact("fct_1", key="home"), s.fact("fct_9", key="home", owner=s.OTHER))
        with pytest.raises(StorageError):
            await s.put(store, s.fact("fct_2", key="home"))
        mine, theirs = await store.read(lambda tx: (tx.fact_with_key(LOCAL, "home"), tx.fact_with_key(s.OTHER, "home")))
        assert mine is not None
        assert theirs is not None
        assert (mine.id, theirs.id) == ("fct_1", "fct_9")
        await s.put(store, s.fact("fct_1", key="town"), s.fact("fct_2", key="home"))
        await store.transact(lambda tx: tx.drop_fact(FactId("fct_2")))
        assert await store.read(lambda tx: tx.fact_with_key(LOCAL, "home")) is None
        assert await found(store) == ["fct_1"]

    async def test_facts_are_found_by_all_their_words(self, store: Store) -> None:
        """A search wants every word, in any case; only with `prefix` may the last one be the beginning of one."""
        await s.put(
            store,
            s.fact("fct_1", text="Lives in Zürich, near the lake"),
            s.fact("fct_2", text="The cat is called Zürich"),
            s.fact("fct_3", text="Category theory"),
            s.fact("fct_9", text="Zürich", owner=s.OTHER),
        )
        assert await found(store, "zürich") == ["fct_2", "fct_1"]
        assert await found(store, "LAKE zürich") == ["fct_1"]
        assert await found(store, "cat") == ["fct_2"]
        assert await found(store, "cat", prefix=True) == ["fct_3", "fct_2"]
        assert await found(store, "zürich", limit=1) == ["fct_2"]
        assert await found(store, "zürich paris") == []
        assert await found(store, "' OR * --") == []
        assert await found(store, '?!"') == []

    async def test_a_changed_fact_is_found_by_its_new_words_alone(self, store: Store) -> None:
        """The search entry follows the text, and goes with the fact. Forgetting a session erases its facts alone."""
        await s.put(store, s.fact("fct_1", text="Lives in Bonn"), s.fact("fct_2", session_id=SessionId("ses_2")))
        await s.put(store, s.fact("fct_1", text="Lives in Berlin"), s.fact("fct_3"))
        assert await found(store, "bonn") == []
        assert await found(store, "berlin") == ["fct_1"]
        await store.transact(lambda tx: tx.drop_fact(FactId("fct_1")))
        assert await found(store, "berlin") == []
        await store.transact(lambda tx: tx.drop_session_facts(s.SID))
        assert await found(store) == ["fct_2"]

    async def test_a_follower_of_facts_misses_none_while_others_write(self, store: Store) -> None:
        """A reader that goes on from the last n it saw meets every fact: no smaller n comes late."""
        seen = await s.follow(
            lambda name: s.put(store, s.fact(name)),
            lambda last: store.read(lambda tx: tx.facts_after(LOCAL, last.n if last else 0, 5)),
        )
        assert len({fact.id for fact in seen}) == 80
        assert [fact.n for fact in seen] == sorted({fact.n for fact in seen})
