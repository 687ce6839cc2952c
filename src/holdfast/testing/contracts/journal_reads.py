"""Reading: pages, readers beside the writer, what a restart finds, and what is left of a journal after its run."""

from functools import partial

import anyio
import pytest

from holdfast.core.errors import AppendRefusedError, JournalPrunedError, SealedError
from holdfast.core.events import RunEnded, entry
from holdfast.core.ids import RunId
from holdfast.ports.journal import Append, Journal, JournalHead
from holdfast.testing.contracts import samples as s
from holdfast.testing.contracts.journal_appends import OTHER_RUN, accept, head, sealing, words
from holdfast.testing.contracts.samples import RID, adding


async def seqs(journal: Journal, after: int, limit: int = 1000, run: RunId = RID) -> list[int]:
    return [found.seq for found in await journal.read(run, after, limit)]


class ReadContract:
    @pytest.mark.parametrize("limit", [1, 2, 3, 7])
    async def test_pages_have_every_entry_once(self, journal: Journal, limit: int) -> None:
        """L5: page after page there is no gap and no entry twice, however the appends were cut; past the end there is
        nothing."""
        seq = 1
        for size in (1, 5, 2, 3, 1, 8):
            await accept(journal, adding(RID, seq, *(str(seq + n) for n in range(size))))
            seq += size
        seen = await s.pages(lambda last: journal.read(RID, last.seq if last else 0, limit), limit)
        assert [found.seq for found in seen] == list(range(1, 21))
        assert await seqs(journal, 25, limit) == []

    @pytest.mark.parametrize("settled", [False, True])
    async def test_a_page_has_no_more_bytes_than_asked_for(self, journal: Journal, settled: bool) -> None:
        """L6: entries of any size come in pages of bounded size, each entry once; one that is larger comes alone."""
        sizes = [10, 40_000, 10, 300_000, 10, 10, 90_000, 90_000, 90_000, 10]
        seq = 1
        for size in sizes:
            await accept(journal, adding(RID, seq, "x" * size))
            seq += 1
        await accept(journal, sealing(RID, seq))
        if settled:
            await journal.settled([RID])
        seen: list[int] = []
        while page := await journal.read(RID, len(seen), 1000, 100_000):
            assert len(page) == 1 or sum(len(found.frame) for found in page) <= 100_000
            seen += [found.seq for found in page]
        assert seen == list(range(1, len(sizes) + 2))
        assert [found.seq for found in await journal.read(RID, 0, 3, 1_000_000)] == [1, 2, 3]

    async def test_whole_journals_are_read_at_once(self, journal: Journal) -> None:
        """Several runs in one call: each has what its pages have, whether it is open, settled, long or unknown."""
        await accept(journal, adding(RID, 1, *(f"w{n}" for n in range(2500))), adding("run_2", 1, "x"))
        await accept(journal, sealing("run_2", 2, "y"), adding("run_3", 1, s.ODD))
        await journal.settled([RunId("run_2")])
        runs = [RID, RunId("run_2"), RunId("run_3"), RunId("run_never")]
        whole = await journal.read_whole(runs)
        assert {run: list(found) for run, found in whole.items()} == {
            run: list(await journal.read(run, 0, 5000)) for run in runs
        }
        assert [len(whole[run]) for run in runs] == [2500, 3, 1, 0]
        assert await seqs(journal, 1000) == list(range(1001, 2001))  # the default limit, within one append
        assert await seqs(journal, 7, run=RunId("run_never")) == []
        assert await head(journal, RunId("run_never")) == JournalHead()

    async def test_readers_beside_the_writer_see_a_growing_prefix(self, journal: Journal) -> None:
        """L5: while entries are appended, any reader sees a prefix without gaps that never shrinks."""
        total = 150

        async def follow(limit: int) -> None:
            cursor = 0
            while cursor < total:
                page = await seqs(journal, cursor, limit)
                assert page == list(range(cursor + 1, cursor + 1 + len(page)))
                cursor += len(page)
                stands = await head(journal)
                assert stands.last_seq >= cursor

        async def reread() -> None:
            longest = 0
            while longest < total:
                whole = await seqs(journal, 0)
                assert whole == list(range(1, len(whole) + 1))
                assert len(whole) >= longest
                longest = len(whole)

        with anyio.fail_after(s.GUARD):
            async with anyio.create_task_group() as group:
                group.start_soon(follow, 1)
                group.start_soon(follow, 1000)
                group.start_soon(reread)
                for n in range(1, total + 1):
                    await accept(journal, adding(RID, n, str(n)), adding("run_2", n, "x"))

    async def test_a_cancelled_call_disturbs_nobody(self, journal: Journal) -> None:
        """An append whose caller is cancelled has happened for all its runs or for none, and the journal reads and
        appends as before; so it does after a cancelled read."""
        for n in range(5):
            batch = [adding(f"a{n}", 1, "x", "y"), adding(f"b{n}", 1, "x", "y")]
            for call in (partial(journal.append, batch), partial(journal.read, RID)):
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await call()
        with anyio.fail_after(s.GUARD):
            await accept(journal, adding(RID, 1, "later"))
            assert await words(journal) == ["later"]
            for n in range(5):
                first, second = await head(journal, RunId(f"a{n}")), await head(journal, RunId(f"b{n}"))
                assert first == second
                assert first.last_seq in (0, 2)

    async def test_committed_entries_are_there_after_a_restart(self, make_journal: s.MakeJournal) -> None:
        """X1: the next incarnation reads every entry that an append was answered for, and goes on from there."""
        ended = entry(3, RunEnded("cancelled", reason="asked"))
        async with make_journal() as journal:
            await accept(journal, adding(RID, 1, s.ODD, "b"), adding("run_2", 1, "x"))
            await accept(journal, Append(RID, 1, [ended], seals=True))
            before = list(await journal.read(RID))
        async with make_journal() as journal:
            assert list(await journal.read(RID)) == before
            assert await head(journal) == JournalHead(epoch=1, last_seq=3, sealed=True)
            await accept(journal, adding("run_2", 2, "y"))
            assert await words(journal, OTHER_RUN) == ["x", "y"]

    async def test_what_was_appended_is_there_for_every_later_reader(self, journal: Journal) -> None:
        """Once `append` has returned, heads and reads of the run have its entries, also after a `reopen`."""
        for n in range(1, 21):
            await accept(journal, adding(RID, n, str(n)))
            for _ in range(2):
                assert await head(journal) == JournalHead(epoch=1, last_seq=n)
                assert await seqs(journal, n - 1) == [n]
                await journal.reopen()
        assert await words(journal) == [str(n) for n in range(1, 21)]


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
