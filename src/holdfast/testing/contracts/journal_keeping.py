"""What becomes of a journal after its run: settled, purged, or purged with a mark."""

import pytest

from holdfast.core.errors import JournalPruned, Refused, Sealed
from holdfast.core.ids import RunId
from holdfast.ports import Head, Journal
from holdfast.testing.contracts import samples as s
from holdfast.testing.contracts.journal_appends import OTHER_RUN, accept, head, sealing, words
from holdfast.testing.contracts.samples import RID, adding


async def two_sealed(journal: Journal) -> None:
    """Two runs that share commits, each of five entries."""
    await accept(journal, adding(RID, 1, "a", "b"), adding("run_2", 1, "v", "w", "x"))
    await accept(journal, adding(RID, 3, "c"), adding("run_2", 4, "y"))
    await accept(journal, sealing(RID, 4, "d"), sealing("run_2", 5))


FIRST = ["a", "b", "c", "d", "run.complete"]
SECOND = ["v", "w", "x", "y", "run.complete"]


class Keeping:
    async def test_a_settled_journal_stays_readable(self, journal: Journal) -> None:
        """L5: a late client gets everything, in the same bytes and pages, after the run was settled."""
        await two_sealed(journal)
        before = list(await journal.read(RID))
        await journal.settled([RID])
        assert list(await journal.read(RID)) == before
        assert list(await journal.read(RID, 2, 2)) == before[2:4]
        assert list(await journal.read(RID, 5)) == []
        assert await head(journal) == Head(epoch=1, last_seq=5, sealed=True)
        assert await words(journal, OTHER_RUN) == SECOND

    async def test_settling_may_be_said_twice_and_of_anything(self, journal: Journal) -> None:
        """Crash between settle and here: it is said again, of runs without a journal too."""
        await two_sealed(journal)
        for _ in range(2):
            await journal.settled([RID, OTHER_RUN, RunId("run_never_written")])
        await journal.settled([])
        assert await words(journal) == FIRST
        assert await words(journal, OTHER_RUN) == SECOND
        assert list(await journal.read(RunId("run_never_written"))) == []

    async def test_a_settled_journal_is_still_sealed_and_fenced(self, journal: Journal) -> None:
        """C6: no late append slips in after settling, and a fence still answers."""
        await two_sealed(journal)
        await journal.settled([RID])
        (refusal,) = await journal.append([adding(RID, 6, "late")])
        assert isinstance(refusal, Sealed)
        stands = (await journal.fence({RID: 2}))[RID]
        assert (stands.last_seq, stands.sealed, stands.pruned) == (5, True, False)
        assert await words(journal) == FIRST

    async def test_a_settled_journal_survives_a_restart(self, make_journal: s.MakeJournal) -> None:
        """X1: the form that is cheap to keep is as durable as the other."""
        async with make_journal() as journal:
            await two_sealed(journal)
            await journal.settled([RID])
        async with make_journal() as journal:
            assert await words(journal) == FIRST
            assert await words(journal, OTHER_RUN) == SECOND

    @pytest.mark.parametrize("settled", [False, True])
    async def test_purging_leaves_a_mark_and_nothing_else(self, journal: Journal, settled: bool) -> None:
        """A later read, at any cursor, is told that it was pruned; a neighbour in the same commits stays whole."""
        await two_sealed(journal)
        if settled:
            await journal.settled([RID, OTHER_RUN])
        await journal.purge([RID])
        for after in (0, 3, 9):
            with pytest.raises(JournalPruned) as caught:
                await journal.read(RID, after)
            assert caught.value.run == RID
        assert (await head(journal)).pruned
        assert (await journal.fence({RID: 9}))[RID].pruned
        assert await words(journal, OTHER_RUN) == SECOND

    async def test_a_pruned_journal_takes_no_append(self, journal: Journal) -> None:
        """A late worker cannot begin a pruned journal anew, whatever its epoch and number."""
        await two_sealed(journal)
        await journal.purge([RID])
        for seq in (1, 6):
            (refusal,) = await journal.append([adding(RID, seq, "late", epoch=9)])
            assert isinstance(refusal, Refused)
        with pytest.raises(JournalPruned):
            await journal.read(RID)

    async def test_purging_may_be_repeated(self, journal: Journal) -> None:
        """Crash between purge and its bookkeeping: it is done again, and of runs without a journal."""
        await two_sealed(journal)
        for _ in range(2):
            await journal.purge([RID, RunId("run_9")])
        await journal.purge([])
        assert (await head(journal)).pruned
        assert await words(journal, OTHER_RUN) == SECOND

    async def test_a_purge_outlives_the_process(self, make_journal: s.MakeJournal) -> None:
        """What was erased does not come back with a restart, and its mark stays."""
        async with make_journal() as journal:
            await two_sealed(journal)
            await journal.purge([RID])
        async with make_journal() as journal:
            with pytest.raises(JournalPruned):
                await journal.read(RID)
            assert await words(journal, OTHER_RUN) == SECOND
