"""What may be added to a journal, and what is refused."""

import pytest

from holdfast.core.errors import AppendRefusedError, FencedError, SealedError, SeqConflictError
from holdfast.core.events import Entry, RunEnded, TextDelta, entry
from holdfast.core.ids import RunId
from holdfast.ports.journal import Append, Journal, JournalHead
from holdfast.testing.contracts import samples as s
from holdfast.testing.contracts.samples import RID, adding

OTHER_RUN = RunId("run_2")


def sealing(rid: str, seq: int, *words: str, epoch: int = 1) -> Append:
    """Deltas from `seq` on, and the terminal event after them."""
    entries = s.texts(seq, *words)
    return Append(RunId(rid), epoch, [*entries, entry(seq + len(words), RunEnded("complete"))], seals=True)


async def accept(journal: Journal, *batch: Append) -> None:
    assert list(await journal.append(batch)) == [None] * len(batch)


async def head(journal: Journal, run: RunId = RID) -> JournalHead:
    return (await journal.heads([run]))[run]


async def words(journal: Journal, run: RunId = RID) -> list[str]:
    """The texts of a journal; a terminal event counts as its type."""
    found = await journal.read(run)
    return [event.text if isinstance(event := each.event(), TextDelta) else each.type for each in found]


class AppendContract:
    async def test_entries_come_back_in_order_byte_for_byte(self, journal: Journal) -> None:
        """P2: what was appended is read as the same bytes with the same numbers."""
        first = [entry(1, TextDelta(s.ODD)), entry(2, TextDelta("")), Entry(3, b"id: 3\nevent: x\ndata: \xff\x00\n\n")]
        second = [entry(4, TextDelta("z" * 300_000)), entry(5, RunEnded("failed", reason=s.ODD))]
        await accept(journal, Append(RID, 1, first))
        await accept(journal, Append(RID, 1, second, seals=True))
        assert list(await journal.read(RID)) == first + second

    async def test_a_thousand_runs_in_one_batch(self, journal: Journal) -> None:
        """One commit takes appends of as many runs as there are, new ones and known ones."""
        names = [RunId(f"run_{n:04}") for n in range(1000)]
        await accept(journal, *(adding(name, 1, name, "b") for name in names))
        await accept(journal, *(sealing(name, 3, "c") for name in names))
        heads = await journal.heads(names)
        assert set(heads) == set(names)
        assert set(heads.values()) == {JournalHead(epoch=1, last_seq=4, sealed=True)}
        for name in (names[0], names[499], names[999]):
            assert await words(journal, name) == [name, "b", "c", "run.complete"]

    async def test_heads_follow_the_appends(self, journal: Journal) -> None:
        """`heads` says the epoch, the last number and whether the terminal event is there."""
        await accept(journal, adding(RID, 1, "a", "b", epoch=3))
        assert await head(journal) == JournalHead(epoch=3, last_seq=2)
        await accept(journal, sealing(RID, 3, "c", epoch=4))
        assert await head(journal) == JournalHead(epoch=4, last_seq=4, sealed=True)
        assert await journal.heads([]) == {}
        assert list(await journal.append([])) == []

    @pytest.mark.parametrize("seq", [1, 2, 4, 9])
    async def test_an_append_must_follow_the_last_entry(self, journal: Journal, seq: int) -> None:
        """A repeated, overlapping or gapped append is refused with both numbers and adds nothing. The first entry of a
        run has the number 1 and no other."""
        for first in (0, 2):
            (refusal,) = await journal.append([adding(RID, first, "x")])
            assert isinstance(refusal, SeqConflictError)
        await accept(journal, adding(RID, 1, "a", "b"))
        (refusal,) = await journal.append([adding(RID, seq, "x", "y")])
        assert isinstance(refusal, SeqConflictError)
        assert (refusal.run, refusal.seq, refusal.last) == (RID, seq, 2)
        assert await words(journal) == ["a", "b"]

    @pytest.mark.parametrize("epoch", [1, 2])
    async def test_nothing_follows_the_terminal_event(self, journal: Journal, epoch: int) -> None:
        """C6: a sealed journal refuses everything, a second terminal event and a later epoch included."""
        await accept(journal, sealing(RID, 1, "a"))
        for late in (adding(RID, 3, "late", epoch=epoch), sealing(RID, 3, epoch=epoch)):
            (refusal,) = await journal.append([late])
            assert isinstance(refusal, SealedError)
            assert refusal.run == RID
        assert await words(journal) == ["a", "run.complete"]

    async def test_a_refusal_concerns_its_own_item_alone(self, journal: Journal) -> None:
        """Between refused appends of the same commit the others are durable, and answers come in the batch's order."""
        await accept(journal, adding("fenced", 1, "a", epoch=5), sealing("sealed", 1), adding("gap", 1, "a"))
        answers = await journal.append(
            [
                adding("new", 1, "x"),
                adding("fenced", 2, "x", epoch=4),
                adding("known", 1, "x", "y"),
                adding("sealed", 2, "x"),
                adding("gap", 3, "x"),
                sealing("last", 1, "x"),
            ]
        )
        refusals = [None, FencedError, None, SealedError, SeqConflictError, None]
        assert [answer and type(answer) for answer in answers] == refusals
        expected = {
            "new": ["x"],
            "known": ["x", "y"],
            "last": ["x", "run.complete"],
            "fenced": ["a"],
            "sealed": ["run.complete"],
            "gap": ["a"],
        }
        assert {run: await words(journal, RunId(run)) for run in expected} == expected

    async def test_a_refused_append_changes_nothing(self, journal: Journal) -> None:
        """Neither entries nor epoch nor seal of a run move when its append is refused."""
        await accept(journal, adding(RID, 1, "a", epoch=2))
        for refused in (adding(RID, 3, "x", epoch=9), sealing(RID, 2, epoch=1), sealing(RID, 1, epoch=2)):
            (refusal,) = await journal.append([refused])
            assert isinstance(refusal, AppendRefusedError)
            assert await head(journal) == JournalHead(epoch=2, last_seq=1)
        await accept(journal, adding(RID, 2, "b", epoch=2))


class FenceContract:
    async def test_an_older_epoch_cannot_append(self, journal: Journal) -> None:
        """A worker that was overtaken is refused with both epochs, also on a journal it never wrote to."""
        await accept(journal, adding(RID, 1, "a", epoch=2))
        await journal.fence({RID: 3, OTHER_RUN: 2})
        for run, seq, epoch, current in ((RID, 2, 2, 3), (RID, 2, 1, 3), (OTHER_RUN, 1, 1, 2)):
            (refusal,) = await journal.append([adding(run, seq, "late", epoch=epoch)])
            assert isinstance(refusal, FencedError)
            assert (refusal.run, refusal.epoch, refusal.current) == (run, epoch, current)
        assert await words(journal) == ["a"]
        assert await words(journal, OTHER_RUN) == []

    async def test_a_newer_epoch_raises_the_fence_by_appending(self, journal: Journal) -> None:
        """An append of a later epoch shuts out the earlier ones without a call of its own."""
        await accept(journal, adding(RID, 1, "a", epoch=1))
        await accept(journal, adding(RID, 2, "b", epoch=4))
        (refusal,) = await journal.append([adding(RID, 3, "late", epoch=3)])
        assert isinstance(refusal, FencedError)
        assert refusal.current == 4

    async def test_a_fence_says_where_the_journal_stands(self, journal: Journal) -> None:
        """The answer has the new epoch and how far each journal goes, of every run that was named."""
        await accept(journal, adding(RID, 1, "a", "b"), sealing("run_2", 1))
        answer = await journal.fence({RID: 2, OTHER_RUN: 2, RunId("run_new"): 2})
        assert answer[RID] == JournalHead(epoch=2, last_seq=2)
        assert answer[OTHER_RUN].sealed
        assert answer[OTHER_RUN].last_seq == 1
        assert answer[RunId("run_new")] == JournalHead(epoch=2)
        assert await head(journal) == answer[RID]
        assert await journal.fence({}) == {}

    @pytest.mark.parametrize("epoch", [0, 1, 3])
    async def test_a_fence_never_falls(self, journal: Journal, epoch: int) -> None:
        """Raising the epoch to what it is, or lower, changes nothing."""
        await journal.fence({RID: 3})
        assert (await journal.fence({RID: epoch}))[RID] == JournalHead(epoch=3)
        (refusal,) = await journal.append([adding(RID, 1, "late", epoch=2)])
        assert isinstance(refusal, FencedError)

    async def test_a_fence_outlives_the_process(self, make_journal: s.MakeJournal) -> None:
        """X1: an older epoch is refused after a restart too, also where nothing had been appended."""
        async with make_journal() as journal:
            await accept(journal, adding(RID, 1, "a"))
            await journal.fence({RID: 5, OTHER_RUN: 4})
        async with make_journal() as journal:
            assert await head(journal) == JournalHead(epoch=5, last_seq=1)
            assert await head(journal, OTHER_RUN) == JournalHead(epoch=4)
            answers = await journal.append([adding(RID, 2, "late", epoch=4), adding("run_2", 1, "x", epoch=4)])
            assert [type(answer) for answer in answers] == [FencedError, type(None)]
