"""Ledgers, dirty turns and facts."""

from dataclasses import replace
from functools import partial

import pytest

from holdfast.core.errors import StorageError
from holdfast.core.ids import LOCAL, FactId, SessionId
from holdfast.core.memory_ledger import RESTS, DirtyTurn, Ledger, MemoryCommit, TurnText
from holdfast.core.parts import TextPart
from holdfast.core.run import Lease
from holdfast.ports.store import Fact, Store, Tx
from holdfast.testing.contracts import samples as s

LEDGERS = [
    s.full_ledger(),
    Ledger(s.SID, LOCAL),
    Ledger(s.SID, LOCAL, due_at=0.0, last_error="", handle=""),
    Ledger(s.SID, LOCAL, due_at=RESTS, commit=MemoryCommit("notes", 1, 1)),
    Ledger(s.SID, LOCAL, commit=MemoryCommit("notes", 1, 2, Lease(s.NODE))),
]
TURNS = [
    s.dirty_turn(1),
    s.dirty_turn(
        2**40, handle=s.ODD, words=TurnText(s.every_part(), (TextPart(s.LONG),)), said_at=0.1 + 0.2, owner=s.OTHER
    ),
    s.dirty_turn(3, handle="", words=TurnText((), ())),
]


async def known(store: Store, *facts: Fact) -> None:
    def work(tx: Tx) -> None:
        for each in facts:
            tx.put_fact(each)

    await store.transact(work)


async def found(store: Store, text: str = "", *, prefix: bool = False, limit: int = 99) -> list[str]:
    facts = await store.read(lambda tx: tx.facts(LOCAL, limit, text=text, prefix=prefix))
    return [each.id for each in facts]


class LedgerContract:
    @pytest.mark.parametrize("value", LEDGERS, ids=range(len(LEDGERS)))
    async def test_a_ledger_comes_back_as_it_was_written(self, store: Store, value: Ledger) -> None:
        """M11: every field of a ledger survives, and a second put replaces them all."""
        await store.transact(lambda tx: tx.put_ledger(s.full_ledger()))
        await store.transact(lambda tx: tx.put_ledger(value))
        assert await store.read(lambda tx: tx.ledger(value.session_id)) == value

    @pytest.mark.parametrize("value", TURNS, ids=range(len(TURNS)))
    async def test_a_dirty_turn_comes_back_as_it_was_written(self, store: Store, value: DirtyTurn) -> None:
        """M11: every field of a dirty turn survives, the words of erased messages among them."""
        await store.transact(lambda tx: tx.put_dirty_turn(replace(value, handle="other", words=None)))
        await store.transact(lambda tx: tx.put_dirty_turn(value))
        assert list(await store.read(lambda tx: tx.dirty_turns(s.SID, 9))) == [value]

    async def test_due_ledgers_come_in_the_order_of_their_time(self, store: Store) -> None:
        """M2: those that are due by a moment, the earliest first, up to the limit; one without a time never."""

        def write(tx: Tx) -> None:
            for name, due_at in (("ses_c", 5.0), ("ses_a", 7.0), ("ses_b", 5.0), ("ses_d", None), ("ses_e", RESTS)):
                tx.put_ledger(Ledger(SessionId(name), LOCAL, due_at=due_at))

        async def due(by: float, limit: int = 9) -> list[str]:
            return [each.session_id for each in await store.read(lambda tx: tx.due_ledgers(by, limit))]

        assert await due(RESTS) == []
        await store.transact(write)
        assert await due(4.9) == []
        assert await due(5.0) == ["ses_b", "ses_c"]
        assert await due(1e300) == ["ses_b", "ses_c", "ses_a"]
        assert await due(RESTS) == ["ses_b", "ses_c", "ses_a", "ses_e"]
        assert await due(RESTS, 3) == ["ses_b", "ses_c", "ses_a"]
        await store.transact(lambda tx: tx.put_ledger(Ledger(SessionId("ses_b"), LOCAL)))
        assert await due(6.0) == ["ses_c"]

    async def test_dirty_turns_are_kept_by_session_and_number(self, store: Store) -> None:
        """M4: turns come in order of their numbers and are dropped up to one of them, of one session alone."""

        def write(tx: Tx) -> None:
            for n in (11, 2, 9, 1):
                tx.put_dirty_turn(s.dirty_turn(n))
            tx.put_dirty_turn(s.dirty_turn(1, session_id=SessionId("ses_2")))

        async def numbers(sid: str, limit: int = 99) -> list[int]:
            return [turn.n for turn in await store.read(lambda tx: tx.dirty_turns(SessionId(sid), limit))]

        await store.transact(write)
        assert await numbers(s.SID) == [1, 2, 9, 11]
        assert await numbers(s.SID, 2) == [1, 2]
        await store.transact(lambda tx: tx.drop_dirty_turns(s.SID, 9))
        assert await numbers(s.SID) == [11]
        assert await numbers("ses_2") == [1]

    async def test_a_ledger_goes_with_its_session_and_facts_stay(self, store: Store) -> None:
        """M11: erasing a session erases its ledger and dirty turns, and nothing that was learnt from it."""

        def write(tx: Tx) -> None:
            for sid in (s.SID, SessionId("ses_2")):
                tx.put_session(s.session(sid))
                tx.put_ledger(Ledger(sid, LOCAL))
                tx.put_dirty_turn(s.dirty_turn(1, session_id=sid))
            tx.put_fact(s.fact("fct_1"))

        await store.transact(write)
        await store.transact(lambda tx: tx.drop_session(s.SID))
        gone, kept = await store.read(lambda tx: (tx.ledger(s.SID), tx.ledger(SessionId("ses_2"))))
        assert (gone, kept) == (None, Ledger(SessionId("ses_2"), LOCAL))
        assert await store.read(lambda tx: len(tx.dirty_turns(s.SID, 9))) == 0
        assert await store.read(lambda tx: len(tx.dirty_turns(SessionId("ses_2"), 9))) == 1
        assert await found(store) == ["fct_1"]


class FactContract:
    async def test_a_fact_comes_back_as_it_was_written(self, store: Store) -> None:
        """Every field of a fact survives but its number, which the store gives."""
        for value in (s.full_fact(), s.fact("fct_full", text="\x00", vector=b"\x00"), s.fact("fct_full", text=s.LONG)):
            await known(store, value)
            kept = await store.read(lambda tx: tx.fact(FactId("fct_full")))
            assert kept is not None
            assert replace(kept, n=0) == replace(value, n=0)

    async def test_each_write_of_a_fact_makes_it_the_newest(self, store: Store) -> None:
        """Numbers rise with every write and are never used again, so that a follower sees each change."""
        await known(store, s.fact("fct_1"), s.fact("fct_2"), s.fact("fct_3"))
        assert await found(store) == ["fct_3", "fct_2", "fct_1"]
        last = await store.read(lambda tx: tx.facts_after(LOCAL, 0, 9)[-1].n)
        await store.transact(lambda tx: tx.drop_fact(FactId("fct_3")))
        await known(store, s.fact("fct_1", text="again"))
        news = await store.read(lambda tx: tx.facts_after(LOCAL, last, 9))
        assert [each.id for each in news] == ["fct_1"]
        assert await found(store) == ["fct_1", "fct_2"]

    async def test_facts_are_paged_in_both_directions(self, store: Store) -> None:
        """Pages have each fact once: newest first by `before`, oldest first by `after`."""
        await known(store, *(s.fact(f"fct_{n}", text=f"even {n}" if n % 2 == 0 else f"odd {n}") for n in range(7)))
        ids = [f"fct_{n}" for n in range(7)]

        async def older(last: Fact | None, text: str = "") -> list[Fact]:
            return list(await store.read(lambda tx: tx.facts(LOCAL, 2, text=text, before=last.n if last else None)))

        async def newer(last: Fact | None) -> list[Fact]:
            return list(await store.read(lambda tx: tx.facts_after(LOCAL, last.n if last else 0, 2)))

        assert [each.id for each in await s.pages(older, 2)] == ids[::-1]
        assert [each.id for each in await s.pages(partial(older, text="even"), 2)] == [
            "fct_6",
            "fct_4",
            "fct_2",
            "fct_0",
        ]
        assert [each.id for each in await s.pages(newer, 2)] == ids

    async def test_a_key_has_one_fact_of_an_owner(self, store: Store) -> None:
        """A second fact of a key is refused; the same key of another owner, or after the first is gone, is not."""
        await known(store, s.fact("fct_1", key="home"), s.fact("fct_9", key="home", owner=s.OTHER))
        with pytest.raises(StorageError):
            await known(store, s.fact("fct_2", key="home"))
        mine, theirs = await store.read(lambda tx: (tx.fact_with_key(LOCAL, "home"), tx.fact_with_key(s.OTHER, "home")))
        assert mine is not None
        assert theirs is not None
        assert (mine.id, theirs.id) == ("fct_1", "fct_9")
        await known(store, s.fact("fct_1", key="town"), s.fact("fct_2", key="home"))
        await store.transact(lambda tx: tx.drop_fact(FactId("fct_2")))
        assert await store.read(lambda tx: tx.fact_with_key(LOCAL, "home")) is None
        assert await found(store) == ["fct_1"]

    async def test_facts_are_found_by_all_their_words(self, store: Store) -> None:
        """A search wants every word, in any case; only with `prefix` may the last one be the beginning of one."""
        await known(
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
        await known(store, s.fact("fct_1", text="Lives in Bonn"), s.fact("fct_2", session_id=SessionId("ses_2")))
        await known(store, s.fact("fct_1", text="Lives in Berlin"), s.fact("fct_3"))
        assert await found(store, "bonn") == []
        assert await found(store, "berlin") == ["fct_1"]
        await store.transact(lambda tx: tx.drop_fact(FactId("fct_1")))
        assert await found(store, "berlin") == []
        await store.transact(lambda tx: tx.drop_session_facts(s.SID))
        assert await found(store) == ["fct_2"]

    async def test_a_follower_of_facts_misses_none_while_others_write(self, store: Store) -> None:
        """A reader that goes on from the last n it saw meets every fact: no smaller n comes late."""
        seen = await s.follow(
            lambda name: known(store, s.fact(name)),
            lambda last: store.read(lambda tx: tx.facts_after(LOCAL, last.n if last else 0, 5)),
        )
        assert len({fact.id for fact in seen}) == 80
        assert [fact.n for fact in seen] == sorted({fact.n for fact in seen})
