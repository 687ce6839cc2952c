"""Every field of every row comes back as it was written."""

import pytest

from holdfast.core.events import Usage
from holdfast.core.ids import LOCAL, ApprovalId, FileId, MessageId, RunId, SessionId
from holdfast.core.parts import Remembered, Text
from holdfast.core.run import Intent, Lease, Recovery, Run
from holdfast.core.session import Message, Session
from holdfast.core.values import replace
from holdfast.ports import Approval, Store, Tx
from holdfast.testing.contracts import samples as s

SESSIONS = [
    s.full_session(),
    s.session(),
    s.session(settings={}, tags=(), project="", model="", system=""),
    s.session(settings=[], tags=("one",), title="\x00"),
    s.session(settings=False, title=s.LONG, updated_at=-1.5),
    s.session(settings=0, previous_session_id=SessionId("")),
]
MESSAGES = [
    s.full_message(),
    s.message("msg_full"),
    s.message("msg_full", parts=(), reason="", key="", model="", usage=Usage(0, 0)),
    s.message("msg_full", parts=(Text("\x00"), Text(s.LONG))),
    s.message("msg_full", parts=(Remembered(({},)),), status="streaming", role="assistant"),
    s.message("msg_full", recovery="recovered", status="failed"),
    s.message("msg_full", recovery="none", status="cancelled", last_seq=1),
]
RUNS = [
    s.full_run(),
    s.run("run_full"),
    s.run("run_full", key="", fingerprint="", reason="", finish_reason="", model=""),
    s.run("run_full", intent=Intent("cancelled"), lease=Lease(s.NODE), status="running"),
    s.run("run_full", recovery=Recovery("recovered"), status="failed", usage=Usage(1, 2)),
    s.run("run_full", recovery=Recovery("none", 5.0, 3), lease=Lease(s.NODE, 0.0), settings={}),
    s.run("run_full", rank=-5, in_tree=False, status="waiting", started_at=0.0, ended_at=0.0),
]
APPROVALS = [
    s.full_approval(),
    s.approval("apr_full"),
    s.approval("apr_full", args=None, reason="\x00", decision="deny", decided_at=0.0, note="ü"),
    s.approval("apr_full", args=s.LONG, call_id="", name=""),
]


class RoundTrips:
    def test_the_samples_set_every_field(self) -> None:
        """A field added to a row later cannot stay outside of these tests."""
        for row in (s.full_session(), s.full_message(), s.full_run(), s.full_approval()):
            assert s.left_out(row) == []

    @pytest.mark.parametrize("value", SESSIONS, ids=range(len(SESSIONS)))
    async def test_a_session_comes_back_as_it_was_written(self, store: Store, value: Session) -> None:
        """Every field of a session survives, whatever is in it."""
        await s.put(store, value)
        assert await store.read(lambda tx: tx.session(value.id)) == value

    @pytest.mark.parametrize("value", MESSAGES, ids=range(len(MESSAGES)))
    async def test_a_message_comes_back_as_it_was_written(self, store: Store, value: Message) -> None:
        """Every field and part of a message survives, whatever is in it."""
        await s.put(store, s.session(value.session_id), value)
        assert await store.read(lambda tx: tx.message(value.id)) == value

    @pytest.mark.parametrize("value", RUNS, ids=range(len(RUNS)))
    async def test_a_run_comes_back_as_it_was_written(self, store: Store, value: Run) -> None:
        """Every field of a run survives, whatever is in it."""
        await s.put(store, s.session(value.session_id), value)
        assert await store.read(lambda tx: tx.run(value.id)) == value

    @pytest.mark.parametrize("value", APPROVALS, ids=range(len(APPROVALS)))
    async def test_an_approval_comes_back_as_it_was_written(self, store: Store, value: Approval) -> None:
        """Every field of an approval survives, whatever is in it."""
        await s.put(store, s.session(value.session_id), s.run(value.run_id, value.session_id), value)
        assert await store.read(lambda tx: tx.approval(value.id)) == value

    async def test_files_and_compactions_come_back_as_they_were_written(self, store: Store) -> None:
        """Every field of the small rows survives, whatever is in it."""
        file = s.stored_file("file_1", owner=s.OTHER, name=s.ODD, media_type="", size=2**40, created_at=0.1 + 0.2)
        compaction = replace(s.compaction("msg_1", summary=s.ODD), owner=s.OTHER, created_at=0.1 + 0.2)
        await s.put(store, s.session(), s.message("msg_1"), file, compaction)
        assert await store.read(lambda tx: tx.file(file.id)) == file
        assert await store.read(lambda tx: dict(tx.compactions(s.SID))) == {MessageId("msg_1"): compaction}

    async def test_rows_survive_reopening_field_by_field(self, make_store: s.MakeStore) -> None:
        """A1: the next incarnation finds each row equal, not just present."""
        rows = (s.full_session(), s.full_message(), s.full_run(), s.full_approval())
        async with make_store() as store:
            await s.put(store, *rows)
        async with make_store() as store:
            found = await store.read(
                lambda tx: (
                    tx.session(rows[0].id),
                    tx.message(rows[1].id),
                    tx.run(rows[2].id),
                    tx.approval(rows[3].id),
                )
            )
        assert found == rows

    async def test_put_replaces_the_whole_row(self, store: Store) -> None:
        """A second put of an id leaves nothing of the first: fields that were set become empty again."""
        sid = SessionId("ses_full")
        await s.put(store, s.full_session(), s.full_message(), s.full_run(), s.full_approval())
        rows = (
            s.session(sid),
            s.message("msg_full", sid),
            s.run("run_full", sid),
            s.approval("apr_full", "run_full", sid),
        )
        await s.put(store, *rows)
        found = await store.read(
            lambda tx: (
                tx.session(sid),
                tx.message(MessageId("msg_full")),
                tx.run(RunId("run_full")),
                tx.approval(ApprovalId("apr_full")),
            )
        )
        assert found == rows

    @pytest.mark.parametrize("name", ["nothing", "", "\x00", "'; drop table sessions; --"])
    async def test_unknown_ids_are_answered_with_nothing(self, store: Store, name: str) -> None:
        """What is not there is None or empty, never an error."""
        sid, rid = SessionId(name), RunId(name)
        found = await store.read(
            lambda tx: (
                tx.session(sid),
                tx.message(MessageId(name)),
                tx.run(rid),
                tx.approval(ApprovalId(name)),
                tx.file(FileId(name)),
                tx.run_with_key(LOCAL, sid, name),
            )
        )
        assert set(found) == {None}
        empty = await store.read(
            lambda tx: (
                *tx.children(sid, None),
                *tx.children(sid, MessageId(name)),
                *tx.open_runs(sid),
                *tx.open_approvals(rid),
                *tx.compactions(sid),
            )
        )
        assert empty == ()

    async def test_erasing_what_is_not_there_is_harmless(self, store: Store) -> None:
        """Each erasure may be repeated."""

        def erase(tx: Tx) -> None:
            tx.drop_messages(s.SID)
            tx.drop_run(s.RID)
            tx.drop_session(s.SID)
            tx.drop_file(FileId("file_1"))
            tx.drop_purges([s.RID])

        for _ in range(2):
            await store.transact(erase)
