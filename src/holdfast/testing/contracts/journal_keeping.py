"""Journals after their run has ended: settled, purged, or purged with a mark."""

import pytest

from holdfast.core.errors import AppendRefusedError, JournalPrunedError, SealedError
from holdfast.core.ids import RunId
from holdfast.ports.journal import Journal, JournalHead
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


class RetentionContract:
    async def test_a_settled_journal_stays_readable(self, make_journal: s.MakeJournal) -> None:
        """L5, X1: a late client gets everything, in the same bytes and pages, after the run was settled and after a
        restart."""
        async with make_journal() as journal:
            await two_sealed(journal)
            before = list(await journal.read(RID))
            await journal.settled([RID])
            assert list(await journal.read(RID)) == before
        async with make_journal() as journal:
            assert list(await journal.read(RID)) == before
            assert list(await journal.read(RID, 2, 2)) == before[2:4]
            assert list(await journal.read(RID, 5)) == []
            assert await head(journal) == JournalHead(epoch=1, last_seq=5, sealed=True)
            assert await words(journal, OTHER_RUN) == SECOND

    async def test_a_settled_journal_is_still_sealed_and_fenced(self, journal: Journal) -> None:
        """C6: no late append slips in after settling, and a fence still answers. Settling may be repeated after a
        crash, of runs without a journal too."""
        await two_sealed(journal)
        for _ in range(2):
            await journal.settled([RID, OTHER_RUN, RunId("run_never_written")])
        await journal.settled([])
        (refusal,) = await journal.append([adding(RID, 6, "late")])
        assert isinstance(refusal, SealedError)
        stands = (await journal.fence({RID: 2}))[RID]
        assert (stands.last_seq, stands.sealed, stands.pruned) == (5, True, False)
        assert (await words(journal), await words(journal, OTHER_RUN)) == (FIRST, SECOND)
        assert list(await journal.read(RunId("run_never_written"))) == []

    @pytest.mark.parametrize("settled", [False, True])
    async def test_purging_leaves_a_mark_and_nothing_else(self, make_journal: s.MakeJournal, settled: bool) -> None:
        """A later read, at any cursor, alone or with others, after a restart too, is told that it was pruned; a late
        worker cannot begin it anew, whatever its epoch and number; a neighbor in the same commits stays whole. Purging
        may be repeated, of runs without a journal too."""
        async with make_journal() as journal:
            await two_sealed(journal)
            if settled:
                await journal.settled([RID, OTHER_RUN])
            for _ in range(2):
                await journal.purge([RID, RunId("run_9")])
            await journal.purge([])
        async with make_journal() as journal:
            for after in (0, 3, 9):
                with pytest.raises(JournalPrunedError) as caught:
                    await journal.read(RID, after)
                assert caught.value.run == RID
            with pytest.raises(JournalPrunedError):
                await journal.read_whole([OTHER_RUN, RID])
            for seq in (1, 6):
                (refusal,) = await journal.append([adding(RID, seq, "late", epoch=9)])
                assert isinstance(refusal, AppendRefusedError)
            assert (await head(journal)).pruned
            assert (await journal.fence({RID: 9}))[RID].pruned
            assert await words(journal, OTHER_RUN) == SECOND
