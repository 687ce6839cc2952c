"""Every field of every row comes back as it was written."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.events import Usage
from holdfast.core.ids import LOCAL, ApprovalId, FactId, FileId, MessageId, RunId, SessionId
from holdfast.core.parts import RememberedPart, TextPart
from holdfast.core.run import Intent, Lease, Recovery, Run
from holdfast.core.session import Message, Session
from holdfast.ports.store import Approval, Store, Tx
from holdfast.testing.contracts import samples as s
from holdfast.testing.contracts.store_memory import TURNS

ROWS: list[Session | Message | Run | Approval] = [
    s.full_session(),
    s.session(),
    s.session(settings={}, tags=(), project="", model="", system=""),
    s.session(settings=[], tags=("one",), title="\x00"),
    s.session(settings=False, title=s.LONG, updated_at=-1.5),
    s.session(settings=0, previous_session_id=SessionId("")),
    s.full_message(),
    s.message("msg_full"),
    s.message("msg_full", parts=(), reason="", key="", model="", usage=Usage(0, 0)),
    s.message("msg_full", parts=(TextPart("\x00"), TextPart(s.LONG))),
    s.message("msg_full", parts=(RememberedPart(({},)),), status="streaming", role="assistant"),
    s.message("msg_full", recovery="recovered", status="failed"),
    s.message("msg_full", recovery="none", status="cancelled", last_seq=1),
    s.full_run(),
    s.run("run_full"),
    s.run("run_full", key="", fingerprint="", reason="", finish_reason="", model=""),
    s.run("run_full", intent=Intent("cancelled"), lease=Lease(s.NODE), status="running"),
    s.run("run_full", recovery=Recovery("recovered"), status="failed", usage=Usage(1, 2)),
    s.run("run_full", recovery=Recovery("none", 5.0, 3), lease=Lease(s.NODE, 0.0), settings={}),
    s.run("run_full", rank=-5, in_tree=False, status="waiting", started_at=0.0, ended_at=0.0),
    s.full_approval(),
    s.approval("apr_full"),
    s.approval("apr_full", args=None, reason="\x00", decision="deny", decided_at=0.0, note="ü"),
    s.approval("apr_full", args=s.LONG, call_id="", name=""),
]


def reread(tx: Tx, row: Any) -> object:
    reads: dict[type, Callable[[Any], object]] = {
        Session: tx.session,
        Message: tx.message,
        Run: tx.run,
        Approval: tx.approval,
    }
    return reads[type(row)](row.id)


class RoundTrips:
    def test_the_samples_set_every_field(self) -> None:
        """A field added to a row later cannot stay outside of these tests. The store numbers facts itself."""
        for row in (s.full_session(), s.full_message(), s.full_run(), s.full_approval(), s.full_ledger(), TURNS[1]):
            assert s.left_out(row) == []
        assert s.left_out(s.full_fact()) == ["n"]

    @pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
    async def test_a_row_comes_back_as_it_was_written(
        self, store: Store, row: Session | Message | Run | Approval
    ) -> None:
        """Every field of a session, a message with its parts, a run and an approval survives, whatever is in it."""
        await s.put(store, row if isinstance(row, Session) else s.session(row.session_id), row)
        assert await store.read(lambda tx: reread(tx, row)) == row

    async def test_files_and_compactions_come_back_as_they_were_written(self, store: Store) -> None:
        """Every field of the small rows survives, whatever is in it."""
        file = s.stored_file("file_1", owner=s.OTHER, name=s.ODD, media_type="", size=2**40, created_at=0.1 + 0.2)
        compaction = replace(s.compaction("msg_1", summary=s.ODD), owner=s.OTHER, created_at=0.1 + 0.2)
        await s.put(store, s.session(), s.message("msg_1"), file, compaction)
        assert await store.read(lambda tx: tx.file(file.id)) == file
        assert await store.read(lambda tx: dict(tx.compactions(s.SID))) == {MessageId("msg_1"): compaction}

    async def test_put_replaces_the_whole_row(self, make_store: s.MakeStore) -> None:
        """A1: a second put of an id leaves nothing of the first, also where it sets fewer fields; the next incarnation
        finds each row equal, not just present."""
        full = (s.full_session(), s.full_message(), s.full_run(), s.full_approval())
        sid = full[0].id
        plain = s.session(sid), s.message("msg_full", sid), s.run("run_full", sid), s.approval("apr_full", sid=sid)

        def look(tx: Tx) -> object:
            return tuple(reread(tx, row) for row in full)

        for rows in (full, plain, full):
            async with make_store() as store:
                await s.put(store, *rows)
                assert await store.read(look) == rows
            async with make_store() as store:
                assert await store.read(look) == rows

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
                tx.ledger(sid),
                tx.fact(FactId(name)),
                tx.fact_with_key(LOCAL, name),
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
                *tx.dirty_turns(sid, 9),
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
            tx.drop_dirty_turns(s.SID, 9)
            tx.drop_fact(FactId("fct_1"))
            tx.drop_session_facts(s.SID)

        for _ in range(2):
            await store.transact(erase)
