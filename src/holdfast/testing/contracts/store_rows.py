"""Every field of every row comes back as it was written."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.events import Usage
from holdfast.core.ids import LOCAL, ApprovalId, FactId, FileId, MessageId, RunId, SessionId
from holdfast.core.memory_ledger import RESTS, DirtyTurn, Ledger, MemoryCommit, TurnText
from holdfast.core.parts import RememberedPart, TextPart
from holdfast.core.run import Intent, Lease, Recovery, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.ports.store import Approval, Fact, Store, StoredFile, Tx
from holdfast.testing.contracts import samples as s

FULL: list[s.Row] = [
    s.full_session(),
    s.full_message(),
    s.full_run(),
    s.full_approval(),
    s.full_file(),
    s.full_compaction(),
    s.full_ledger(),
    s.full_dirty_turn(),
    s.full_fact(),
]
"""Every field is set."""
PLAIN: list[s.Row] = [
    s.session("ses_full"),
    s.message("msg_full", "ses_full"),
    s.run("run_full", "ses_full"),
    s.approval("apr_full", sid="ses_full"),
    s.stored_file("file_1"),
    s.compaction("msg_full", "ses_full"),
    Ledger(SessionId("ses_full"), LOCAL),
    s.dirty_turn(2**40),
    s.fact("fct_full"),
]
"""The same rows with as few fields as possible."""
ROWS: list[s.Row] = [
    *FULL,
    s.session(),
    s.session(settings={}, tags=(), project="", model="", system=""),
    s.session(settings=[], tags=("one",), title="\x00"),
    s.session(settings=False, title=s.LONG, updated_at=-1.5),
    s.session(settings=0, previous_session_id=SessionId("")),
    s.message("msg_full"),
    s.message("msg_full", parts=(), reason="", key="", model="", usage=Usage(0, 0)),
    s.message("msg_full", parts=(TextPart("\x00"), TextPart(s.LONG))),
    s.message("msg_full", parts=(RememberedPart(({},)),), status="streaming", role="assistant"),
    s.message("msg_full", recovery="recovered", status="failed"),
    s.message("msg_full", recovery="none", status="cancelled", last_seq=1),
    s.run("run_full"),
    s.run("run_full", key="", fingerprint="", reason="", finish_reason="", model=""),
    s.run("run_full", intent=Intent("cancelled"), lease=Lease(s.NODE), status="running"),
    s.run("run_full", recovery=Recovery("recovered"), status="failed", usage=Usage(1, 2)),
    s.run("run_full", recovery=Recovery("none", 5.0, 3), lease=Lease(s.NODE, 0.0), settings={}),
    s.run("run_full", rank=-5, in_tree=False, status="waiting", started_at=0.0, ended_at=0.0),
    s.approval("apr_full"),
    s.approval("apr_full", args=None, reason="\x00", decision="deny", decided_at=0.0, note="ü"),
    s.approval("apr_full", args=s.LONG, call_id="", name=""),
    Ledger(s.SID, LOCAL),
    Ledger(s.SID, LOCAL, due_at=0.0, last_error="", handle=""),
    Ledger(s.SID, LOCAL, due_at=RESTS, commit=MemoryCommit("notes", 1, 1)),
    Ledger(s.SID, LOCAL, commit=MemoryCommit("notes", 1, 2, Lease(s.NODE))),
    s.dirty_turn(1),
    s.dirty_turn(3, handle="", words=TurnText((), ())),
    s.fact("fct_full", text="\x00", vector=b"\x00"),
    s.fact("fct_full", text=s.LONG),
]


def reread(tx: Tx, row: Any) -> object:
    reads: dict[type, Callable[[], object]] = {
        Session: lambda: tx.session(row.id),
        Message: lambda: tx.message(row.id),
        Run: lambda: tx.run(row.id),
        Approval: lambda: tx.approval(row.id),
        StoredFile: lambda: tx.file(row.id),
        Compaction: lambda: tx.compactions(row.session_id).get(row.message_id),
        Ledger: lambda: tx.ledger(row.session_id),
        DirtyTurn: lambda: {turn.n: turn for turn in tx.dirty_turns(row.session_id, 9)}.get(row.n),
        Fact: lambda: (found := tx.fact(row.id)) and replace(found, n=row.n),  # the store numbers facts itself
    }
    return reads[type(row)]()


class RoundTrips:
    def test_the_samples_set_every_field(self) -> None:
        """A field added to a row later cannot stay outside of these tests. The store numbers facts itself."""
        assert {type(row).__name__: s.left_out(row) for row in FULL if s.left_out(row)} == {"Fact": ["n"]}

    @pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
    async def test_a_row_comes_back_as_it_was_written(self, store: Store, row: s.Row) -> None:
        """M11: every field of every kind of row survives, the parts of messages among them, whatever is in it."""
        await s.put(store, *(() if isinstance(row, Session) else [s.session(getattr(row, "session_id", s.SID))]), row)
        assert await store.read(lambda tx: reread(tx, row)) == row

    async def test_put_replaces_the_whole_row(self, make_store: s.MakeStore) -> None:
        """A1, M11: a second put of an id leaves nothing of the first, also where it sets fewer fields; the next
        incarnation finds each row equal, not just present."""
        for rows in (FULL, PLAIN, FULL):
            async with make_store() as store:
                await s.put(store, *rows)
                assert await store.read(lambda tx: [reread(tx, row) for row in FULL]) == rows
            async with make_store() as store:
                assert await store.read(lambda tx: [reread(tx, row) for row in FULL]) == rows

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
            tx.drop_ledger(s.SID)
            tx.drop_dirty_turns(s.SID, 9)
            tx.drop_fact(FactId("fct_1"))
            tx.drop_session_facts(s.SID)

        for _ in range(2):
            await store.transact(erase)
