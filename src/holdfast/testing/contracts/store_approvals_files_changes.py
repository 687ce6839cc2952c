"""Approvals, compactions, files, purges, and the change feed."""

from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest

from holdfast.core.ids import LOCAL, ApprovalId, FileId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import FilePart, TextPart
from holdfast.ports.store import Change, ChangeKind, Store, ToolGrant, Tx
from holdfast.testing.contracts import samples as s


async def orphans(store: Store, created_before: float = 99.0, limit: int = 9) -> set[str]:
    found = await store.read(lambda tx: tx.orphan_files(created_before, limit))
    return {file.id for file in found}


class ApprovalsAndFiles:
    async def test_approvals_are_open_until_decided(self, store: Store) -> None:
        """A question is open until it is decided: of its own run alone, and among the old ones of all runs, the oldest
        first. A note stays with the decision."""
        await s.put(store, s.session(), s.run(), s.run("run_2"))
        first, second = s.approval("apr_1", created_at=1.0), s.approval("apr_2", "run_2", created_at=2.0)
        third = s.approval("apr_3", created_at=9.0)
        await s.put(store, second, third, first)
        assert list(await store.read(lambda tx: tx.open_approvals(s.RID))) == [first, third]
        assert list(await store.read(lambda tx: tx.undecided_approvals(5.0, 9))) == [first, second]
        assert list(await store.read(lambda tx: tx.undecided_approvals(5.0, 1))) == [first]
        noted = replace(first, decision="deny", decided_at=3.0, note="late")
        await s.put(store, noted)
        assert await store.read(lambda tx: tx.approval(first.id)) == noted
        assert list(await store.read(lambda tx: tx.open_approvals(s.RID))) == [third]
        assert list(await store.read(lambda tx: tx.undecided_approvals(5.0, 9))) == [second]

    async def test_grants_count_in_their_session_or_in_all(self, store: Store) -> None:
        """A grant is one per tool and scope; a session's own count there alone and go with it."""
        here = ToolGrant(LOCAL, s.SID, "shell", "", 1.0)
        there = ToolGrant(LOCAL, SessionId("ses_2"), "shell", "", 1.0)
        everywhere = ToolGrant(LOCAL, None, "write", "docs", 2.0)
        others = ToolGrant(OwnerId("other"), None, "write", "", 3.0)
        await s.put(store, s.session(), s.session("ses_2"))
        await s.put(store, everywhere, here, there, others, replace(here, created_at=9.0))
        assert list(await store.read(lambda tx: tx.grants(LOCAL, s.SID))) == [here, everywhere]
        assert list(await store.read(lambda tx: tx.grants(LOCAL, None))) == [everywhere]
        await store.transact(lambda tx: tx.drop_session(s.SID))
        assert list(await store.read(lambda tx: tx.grants(LOCAL, s.SID))) == [everywhere]
        await store.transact(lambda tx: tx.drop_grant(LOCAL, None, "write", "docs"))
        await store.transact(lambda tx: tx.drop_grant(LOCAL, None, "never", ""))
        assert list(await store.read(lambda tx: tx.grants(LOCAL, SessionId("ses_2")))) == [there]

    async def test_settings_are_kept_by_owner_and_name(self, store: Store) -> None:
        """Any JSON; None takes a setting away."""
        value = {"a": [1, 2.5, None, "ä"], "b": False}
        await store.transact(lambda tx: tx.put_setting(LOCAL, "x", value))
        await store.transact(lambda tx: tx.put_setting(LOCAL, "y", 1))
        await store.transact(lambda tx: tx.put_setting(OwnerId("other"), "x", 2))
        await store.transact(lambda tx: tx.put_setting(LOCAL, "y", None))
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
        named = (TextPart("see"), file.part())
        await s.put(store, s.message("msg_1", parts=named), s.message("msg_2", "ses_2", parts=named))
        assert await orphans(store) == {"file_2"}
        await store.transact(lambda tx: tx.drop_messages(s.SID))
        assert await orphans(store) == {"file_2"}
        await store.transact(lambda tx: tx.drop_session(SessionId("ses_2")))
        assert await orphans(store) == {"file_1", "file_2"}

    async def test_a_message_keeps_the_files_that_it_names_now(self, store: Store) -> None:
        """A1: once or several times, in the tree or queued outside of it; a rewritten message lets go of others. Naming
        an unknown file is no error: contents are the engine's business."""
        first, second = s.stored_file("file_1"), s.stored_file("file_2")
        queued = s.message("msg_1", in_tree=False, parts=(first.part(), first.part()))
        await s.put(store, s.session(), first, second, queued)
        assert await orphans(store) == {"file_2"}
        unknown = FilePart(FileId("file_9"), "gone.txt", "text/plain", 1)
        await s.put(store, s.message("msg_1", parts=(second.part(), unknown)))
        assert await orphans(store) == {"file_1"}

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
        """Journals to erase are named once each, up to the limit, until somebody says that it is done; they outlive
        their session."""
        names = [RunId(f"run_{n}") for n in range(4)]
        await s.put(store, s.session(), s.run(names[0]))
        await store.transact(lambda tx: tx.queue_purges(names[:3]))
        await store.transact(lambda tx: tx.drop_session(s.SID))
        await store.transact(lambda tx: tx.queue_purges(iter(names[2:])))
        assert sorted(await store.read(lambda tx: tx.queued_purges(9))) == names
        assert len(await store.read(lambda tx: tx.queued_purges(3))) == 3
        await store.transact(lambda tx: tx.drop_purges(iter([names[0], names[3], RunId("run_9")])))
        assert sorted(await store.read(lambda tx: tx.queued_purges(9))) == names[1:3]


async def changes(store: Store, after: int = 0, limit: int = 999) -> list[Change]:
    return list(await store.read(lambda tx: tx.changes(after, limit)))


async def add(store: Store, *names: str) -> None:
    """One transaction with a change for each session name."""

    def work(tx: Tx) -> None:
        for name in names:
            tx.add_change(Change("session.changed", LOCAL, SessionId(name)))

    await store.transact(work)


class ChangeFeed:
    @pytest.mark.parametrize("kind", get_args(ChangeKind))
    async def test_a_change_comes_back_as_it_was_written(self, store: Store, kind: ChangeKind) -> None:
        """Every field of a change survives, set or not."""
        sid, rid, aid = SessionId(s.ODD), RunId("run_1"), ApprovalId("apr_1")
        await store.transact(lambda tx: tx.add_change(Change(kind, s.OTHER, sid, rid, aid, "running")))
        await store.transact(lambda tx: tx.add_change(Change(kind, LOCAL, sid)))
        first, second = await changes(store)
        assert first == Change(kind, s.OTHER, sid, rid, aid, "running", first.n)
        assert second == Change(kind, LOCAL, sid, n=second.n)

    async def test_changes_are_numbered_upwards_and_paged(self, store: Store) -> None:
        """Numbers rise with the order of writing; pages after a cursor have each change once."""
        assert await changes(store) == []
        assert await store.read(lambda tx: tx.change_bounds()) == (0, 0)
        await add(store, "ses_0", "ses_1", "ses_2")
        await add(store, "ses_3")
        await add(store, "ses_4", "ses_5", "ses_6")
        whole = await changes(store)
        assert [change.session_id for change in whole] == [f"ses_{n}" for n in range(7)]
        assert all(a.n < b.n for a, b in pairwise(whole))
        assert whole[0].n >= 1
        assert await s.pages(lambda last: changes(store, last.n if last else 0, 2), 2) == whole
        assert await store.read(lambda tx: tx.change_bounds()) == (0, whole[-1].n)

    async def test_trimming_keeps_the_newest_and_says_what_is_missing(self, store: Store) -> None:
        """After a trim the lower bound is the smallest cursor from which the feed is whole; the upper one stays. A feed
        that is not longer than `keep` is left whole."""
        await store.transact(lambda tx: tx.trim_changes(5))
        await add(store, *(f"ses_{n}" for n in range(10)))
        await store.transact(lambda tx: tx.trim_changes(10))
        whole = await changes(store)
        assert len(whole) == 10
        assert (await store.read(lambda tx: tx.change_bounds()))[0] == 0
        await store.transact(lambda tx: tx.trim_changes(4))
        assert await changes(store) == whole[6:]
        low, high = await store.read(lambda tx: tx.change_bounds())
        assert whole[5].n <= low < whole[6].n
        assert high == whole[9].n
        assert await changes(store, low) == whole[6:]
        await store.transact(lambda tx: tx.trim_changes(4))
        assert await changes(store) == whole[6:]

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
        seen = await s.follow(lambda name: add(store, name), lambda last: changes(store, last.n if last else 0, 7))
        assert seen == await changes(store)
        assert len({change.session_id for change in seen}) == 80
