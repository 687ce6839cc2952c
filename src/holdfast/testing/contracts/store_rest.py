"""Approvals, compactions, files, purges, and the change feed."""

from itertools import pairwise
from typing import get_args

import anyio
import pytest

from holdfast.core.ids import LOCAL, ApprovalId, FileId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import File, Text
from holdfast.core.values import replace
from holdfast.ports import Change, ChangeKind, Grant, Store, Tx
from holdfast.testing.contracts import samples as s


async def orphans(store: Store, created_before: float = 99.0, limit: int = 9) -> set[str]:
    found = await store.read(lambda tx: tx.orphan_files(created_before, limit))
    return {file.id for file in found}


class ApprovalsAndFiles:
    async def test_approvals_of_a_run_are_open_until_decided(self, store: Store) -> None:
        """A question is listed as open until it is decided, of its own run alone."""
        await s.put(store, s.session(), s.run(), s.run("run_2"))
        await s.put(store, s.approval("apr_1"), s.approval("apr_2"), s.approval("apr_3", "run_2"))
        decided = s.approval("apr_1", decision="session", decided_at=3.0)
        await s.put(store, decided)
        open_ones = await store.read(lambda tx: tx.open_approvals(s.RID))
        assert [found.id for found in open_ones] == ["apr_2"]
        assert await store.read(lambda tx: tx.approval(ApprovalId("apr_1"))) == decided
        assert len(await store.read(lambda tx: tx.open_approvals(RunId("run_2")))) == 1

    async def test_old_questions_are_found_while_they_are_open(self, store: Store) -> None:
        """Of all runs, the oldest first, until they are decided; a note stays with the decision."""
        await s.put(store, s.session(), s.run(), s.run("run_2"))
        first, second = s.approval("apr_1", created_at=1.0), s.approval("apr_2", "run_2", created_at=2.0)
        await s.put(store, second, first, s.approval("apr_3", created_at=9.0))
        assert list(await store.read(lambda tx: tx.old_approvals(5.0, 9))) == [first, second]
        assert list(await store.read(lambda tx: tx.old_approvals(5.0, 1))) == [first]
        noted = replace(first, decision="deny", decided_at=3.0, note="late")
        await s.put(store, noted)
        assert list(await store.read(lambda tx: tx.old_approvals(5.0, 9))) == [second]
        assert await store.read(lambda tx: tx.approval(ApprovalId("apr_1"))) == noted

    async def test_grants_count_in_their_session_or_in_all(self, store: Store) -> None:
        """A grant is one per tool and scope; a session's own count there alone and go with it."""
        here = Grant(LOCAL, s.SID, "shell", "", 1.0)
        there = Grant(LOCAL, SessionId("ses_2"), "shell", "", 1.0)
        everywhere = Grant(LOCAL, None, "write", "docs", 2.0)
        others = Grant(OwnerId("other"), None, "write", "", 3.0)
        await s.put(store, s.session(), s.session("ses_2"))

        def grant(tx: Tx) -> None:
            for each in (everywhere, here, there, others, replace(here, created_at=9.0)):
                tx.put_grant(each)

        await store.transact(grant)
        assert list(await store.read(lambda tx: tx.grants(LOCAL, s.SID))) == [here, everywhere]
        assert list(await store.read(lambda tx: tx.grants(LOCAL, None))) == [everywhere]
        await store.transact(lambda tx: tx.drop_session(s.SID))
        assert list(await store.read(lambda tx: tx.grants(LOCAL, s.SID))) == [everywhere]
        await store.transact(lambda tx: tx.drop_grant(LOCAL, None, "write", "docs"))
        await store.transact(lambda tx: tx.drop_grant(LOCAL, None, "never", ""))
        assert list(await store.read(lambda tx: tx.grants(LOCAL, SessionId("ses_2")))) == [there]

    async def test_settings_are_kept_by_owner_and_name(self, store: Store) -> None:
        """Any JSON; None takes a setting away, and one that was rolled back never was."""
        value = {"a": [1, 2.5, None, "ä"], "b": False}
        await store.transact(lambda tx: tx.put_setting(LOCAL, "x", value))
        await store.transact(lambda tx: tx.put_setting(LOCAL, "y", 1))
        await store.transact(lambda tx: tx.put_setting(OwnerId("other"), "x", 2))
        await store.transact(lambda tx: tx.put_setting(LOCAL, "y", None))

        def fails(tx: Tx) -> None:
            tx.put_setting(LOCAL, "x", 0)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.transact(fails)
        assert dict(await store.read(lambda tx: tx.settings(LOCAL))) == {"x": value}

    async def test_a_message_has_one_compaction(self, store: Store) -> None:
        """O3: compactions are found by session and message; a second one of a message replaces the first."""
        await s.put(store, s.session(), s.session("ses_2"), s.message("msg_1"), s.message("msg_2"))
        await s.put(store, s.compaction("msg_1"), s.compaction("msg_2"), s.compaction("msg_3", "ses_2"))
        again = s.compaction("msg_1", summary="again")
        await s.put(store, again)
        found = await store.read(lambda tx: dict(tx.compactions(s.SID)))
        assert found == {MessageId("msg_1"): again, MessageId("msg_2"): s.compaction("msg_2")}

    async def test_files_that_no_message_names_are_orphans(self, store: Store) -> None:
        """A file is an orphan before its message is accepted and after the last one that names it is gone."""
        file = s.stored_file("file_1")
        await s.put(store, s.session(), s.session("ses_2"), file, s.stored_file("file_2", created_at=50.0))
        assert await orphans(store) == {"file_1", "file_2"}
        assert await orphans(store, 20.0) == {"file_1"}
        assert len(await orphans(store, limit=1)) == 1
        named = (Text("see"), file.part())
        await s.put(store, s.message("msg_1", parts=named), s.message("msg_2", "ses_2", parts=named))
        assert await orphans(store) == {"file_2"}
        await store.transact(lambda tx: tx.drop_messages(s.SID))
        assert await orphans(store) == {"file_2"}
        await store.transact(lambda tx: tx.drop_session(SessionId("ses_2")))
        assert await orphans(store) == {"file_1", "file_2"}

    async def test_a_queued_message_keeps_its_files(self, store: Store) -> None:
        """A1: attachments of a turn that waits outside the tree are no orphans."""
        file = s.stored_file("file_1")
        await s.put(store, s.session(), file, s.message("msg_1", in_tree=False, parts=(file.part(),)))
        assert await orphans(store) == set()

    async def test_a_message_that_is_rewritten_lets_go_of_its_files(self, store: Store) -> None:
        """What counts is what the message names now, once or several times."""
        first, second = s.stored_file("file_1"), s.stored_file("file_2")
        await s.put(store, s.session(), first, second, s.message("msg_1", parts=(first.part(), first.part())))
        assert await orphans(store) == {"file_2"}
        await s.put(store, s.message("msg_1", parts=(second.part(),)))
        assert await orphans(store) == {"file_1"}

    async def test_a_message_may_name_a_file_that_is_not_there(self, store: Store) -> None:
        """Naming an unknown file is no error: contents are the engine's business."""
        part = File(FileId("file_9"), "gone.txt", "text/plain", 1)
        await s.put(store, s.session(), s.message("msg_1", parts=(part,)))
        assert await orphans(store) == set()

    async def test_a_digest_is_in_use_while_a_row_names_it(self, store: Store) -> None:
        """Contents shared by two files may go when the second row is gone."""
        await s.put(store, s.stored_file("file_1", sha256="same"), s.stored_file("file_2", sha256="same"))
        await store.transact(lambda tx: tx.drop_file(FileId("file_1")))
        assert await store.read(lambda tx: tx.digest_in_use("same")) is True
        await store.transact(lambda tx: tx.drop_file(FileId("file_2")))
        assert await store.read(lambda tx: tx.digest_in_use("same")) is False
        assert await store.read(lambda tx: tx.file(FileId("file_1"))) is None
        assert await orphans(store) == set()

    async def test_purges_are_remembered_until_dropped(self, store: Store) -> None:
        """Journals to erase are named once each, up to the limit, until somebody says that it is done."""
        names = [RunId(f"run_{n}") for n in range(4)]
        await store.transact(lambda tx: tx.add_purge(names[:3]))
        await store.transact(lambda tx: tx.add_purge(iter(names[2:])))
        assert sorted(await store.read(lambda tx: tx.purges(9))) == names
        assert len(await store.read(lambda tx: tx.purges(3))) == 3
        await store.transact(lambda tx: tx.drop_purges(iter([names[0], names[3], RunId("run_9")])))
        assert sorted(await store.read(lambda tx: tx.purges(9))) == names[1:3]

    async def test_purges_outlive_their_session(self, store: Store) -> None:
        """Dropping a session forgets no journal that has still to be erased."""
        await s.put(store, s.session(), s.run())
        await store.transact(lambda tx: tx.add_purge([s.RID]))
        await store.transact(lambda tx: tx.drop_session(s.SID))
        assert list(await store.read(lambda tx: tx.purges(9))) == [s.RID]


async def changes(store: Store, after: int = 0, limit: int = 999) -> list[Change]:
    return list(await store.read(lambda tx: tx.changes(after, limit)))


async def add(store: Store, *names: str) -> None:
    """One transaction with a change for each session name."""

    def work(tx: Tx) -> None:
        for name in names:
            tx.add_change("session.changed", LOCAL, SessionId(name))

    await store.transact(work)


class ChangeFeed:
    async def test_an_empty_feed_starts_at_zero(self, store: Store) -> None:
        """Nothing has happened: no changes, and a cursor of 0 misses nothing."""
        assert await changes(store) == []
        assert await store.read(lambda tx: tx.change_bounds()) == (0, 0)

    @pytest.mark.parametrize("kind", get_args(ChangeKind))
    async def test_a_change_comes_back_as_it_was_written(self, store: Store, kind: ChangeKind) -> None:
        """Every field of a change survives, set or not."""
        sid, rid, aid = SessionId(s.ODD), RunId("run_1"), ApprovalId("apr_1")
        await store.transact(lambda tx: tx.add_change(kind, s.OTHER, sid, rid, aid, "running"))
        await store.transact(lambda tx: tx.add_change(kind, LOCAL, sid))
        first, second = await changes(store)
        assert first == Change(first.n, kind, s.OTHER, sid, rid, aid, "running")
        assert second == Change(second.n, kind, LOCAL, sid)

    async def test_changes_are_numbered_upwards_and_paged(self, store: Store) -> None:
        """Numbers rise with the order of writing; pages after a cursor have each change once."""
        await add(store, "ses_0", "ses_1", "ses_2")
        await add(store, "ses_3")
        await add(store, "ses_4", "ses_5", "ses_6")
        whole = await changes(store)
        assert [change.session_id for change in whole] == [f"ses_{n}" for n in range(7)]
        assert all(a.n < b.n for a, b in pairwise(whole))
        assert whole[0].n >= 1
        assert await s.pages(lambda last: changes(store, last.n if last else 0, 2), 2) == whole
        assert await store.read(lambda tx: tx.change_bounds()) == (0, whole[-1].n)

    async def test_a_rolled_back_change_is_never_shown(self, store: Store) -> None:
        """The feed has the changes of committed transactions alone."""

        def fail(tx: Tx) -> None:
            tx.add_change("session.changed", LOCAL, SessionId("ses_x"))
            raise LookupError

        await add(store, "ses_1")
        with pytest.raises(LookupError):
            await store.transact(fail)
        await add(store, "ses_2")
        assert [change.session_id for change in await changes(store)] == ["ses_1", "ses_2"]

    async def test_trimming_keeps_the_newest_and_says_what_is_missing(self, store: Store) -> None:
        """After a trim the lower bound is the smallest cursor from which the feed is whole; the upper one stays."""
        await add(store, *(f"ses_{n}" for n in range(10)))
        whole = await changes(store)
        await store.transact(lambda tx: tx.trim_changes(4))
        assert await changes(store) == whole[6:]
        low, high = await store.read(lambda tx: tx.change_bounds())
        assert whole[5].n <= low < whole[6].n
        assert high == whole[9].n
        assert await changes(store, low) == whole[6:]
        await store.transact(lambda tx: tx.trim_changes(4))
        assert await changes(store) == whole[6:]

    async def test_trimming_more_than_there_is_changes_nothing(self, store: Store) -> None:
        """A feed shorter than `keep` is left whole, and so is an empty one."""
        await store.transact(lambda tx: tx.trim_changes(5))
        await add(store, "ses_1", "ses_2")
        await store.transact(lambda tx: tx.trim_changes(5))
        assert len(await changes(store)) == 2
        assert (await store.read(lambda tx: tx.change_bounds()))[0] == 0

    async def test_numbers_never_begin_anew(self, make_store: s.MakeStore) -> None:
        """After all rows were trimmed, and after a restart, the next change has a greater number."""
        async with make_store() as store:
            await add(store, "ses_1", "ses_2")
            last = (await changes(store))[-1].n
            await store.transact(lambda tx: tx.trim_changes(0))
            assert await changes(store) == []
            assert await store.read(lambda tx: tx.change_bounds()) == (last, last)
        async with make_store() as store:
            assert await store.read(lambda tx: tx.change_bounds()) == (last, last)
            await add(store, "ses_3")
            (change,) = await changes(store, last)
            assert change.n > last

    async def test_a_follower_misses_nothing_while_others_write(self, store: Store) -> None:
        """A reader that goes on from the last n it saw meets every change once, in order: no smaller n comes late."""
        writers, each = 8, 10
        seen: list[Change] = []

        async def write(who: int) -> None:
            for n in range(each):
                await add(store, f"ses_{who}_{n}")

        with anyio.fail_after(s.GUARD):
            async with anyio.create_task_group() as group:
                for who in range(writers):
                    group.start_soon(write, who)
                while len(seen) < writers * each:
                    seen += await changes(store, seen[-1].n if seen else 0, 7)
        assert seen == await changes(store)
        assert len({change.session_id for change in seen}) == writers * each
