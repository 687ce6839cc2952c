"""Every field of every row comes back as it was written."""

from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from typing import Any

import pytest

from holdfast.core.events import Failure, Usage
from holdfast.core.ids import LOCAL, ApprovalId, FactId, FileId, MessageId, NodeId, RunId, SessionId
from holdfast.core.memory_ledger import RESTS, DirtyTurn, Ledger, MemoryCommit, TurnText
from holdfast.core.parts import FilePart, Json, Part, ReasoningPart, RememberedPart, TextPart, ToolPart
from holdfast.core.run import Intent, Lease, Recovery, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.ports.store import Approval, Fact, Store, StoredFile, Tx
from holdfast.testing.contracts import samples as s

DATA: Json = {"path": s.ODD, "n": [1, 2.5, None, True, {"": []}]}
EVERY_PART: tuple[Part, ...] = (
    TextPart(s.ODD),
    TextPart(""),
    ReasoningPart(s.ODD),
    ReasoningPart("", provider={"signature": s.ODD}),
    ToolPart("call_1", s.ODD, DATA, "done", DATA, True, s.ODD, 12, DATA),
    ToolPart("call_2", "shell", s.ODD, "pending"),
    ToolPart("call_3", "shell", None, "not_run", result=[], duration_ms=0),
    FilePart(FileId("file_1"), s.ODD, "text/plain", 0),
    RememberedPart(({"text": s.ODD, "source": "notes"},)),
    RememberedPart(()),
)
FULL: list[s.Row] = [
    Session(
        SessionId("ses_full"),
        s.OTHER,
        created_at=0.1 + 0.2,
        updated_at=1_763_195_812.123457,
        title=s.ODD,
        titled_by="person",
        agent="coder",
        model="m/é",
        system=s.ODD,
        settings={"temperature": 0.1, "stop": [s.ODD], "none": None},
        previous_session_id=SessionId("ses_0"),
        pinned=True,
        archived=True,
        tags=("", s.ODD, "b"),
        project=s.ODD,
        head=MessageId("msg_9"),
        redo=(MessageId("msg_7"), MessageId("msg_8")),
        version=7,
        deleted_at=1.25,
    ),
    Message(
        MessageId("msg_full"),
        s.OTHER,
        SessionId("ses_full"),
        "assistant",
        MessageId("msg_parent"),
        0.1 + 0.2,
        run_id=RunId("run_full"),
        status="interrupted",
        parts=EVERY_PART,
        reason=s.ODD,
        error=Failure("model", s.ODD),
        recovery="pending",
        model="m/é",
        usage=Usage(1, 2**40, 0.1 + 0.2),
        key=s.ODD,
        in_tree=False,
        last_seq=2**40,
    ),
    Run(
        RunId("run_full"),
        s.OTHER,
        SessionId("ses_full"),
        MessageId("msg_full"),
        MessageId("msg_parent"),
        agent="coder",
        model="m/é",
        settings={"effort": [s.ODD]},
        lifetime="attached",
        created_at=0.1 + 0.2,
        rank=2**40,
        in_tree=True,
        status="interrupted",
        epoch=3,
        lease=Lease(NodeId("node_1"), 12.5),
        connection=Lease(NodeId("node_2")),
        key=s.ODD,
        fingerprint=s.ODD,
        continues=RunId("run_0"),
        resumes=2,
        intent=Intent("failed", s.ODD, Failure("storage", s.ODD)),
        recovery=Recovery("pending", 1.125, 2),
        reason=s.ODD,
        finish_reason="stop",
        error=Failure("model", s.ODD),
        usage=Usage(0, 0, 0.0),
        started_at=0.5,
        ended_at=0.75,
        last_seq=99,
        pruned=True,
    ),
    s.approval(
        "apr_full",
        "run_full",
        "ses_full",
        owner=s.OTHER,
        call_id=s.ODD,
        name=s.ODD,
        args={"command": [s.ODD, 1, None]},
        reason=s.ODD,
        created_at=0.1 + 0.2,
        decision="always",
        decided_at=0.5,
        note=s.ODD,
    ),
    s.stored_file("file_1", owner=s.OTHER, name=s.ODD, media_type="", size=2**40, created_at=0.1 + 0.2),
    Compaction(SessionId("ses_full"), s.OTHER, MessageId("msg_full"), s.ODD, 0.1 + 0.2),
    Ledger(
        SessionId("ses_full"),
        s.OTHER,
        completed=9,
        committed=3,
        applied=2,
        handle=s.ODD,
        told=("notes", s.ODD),
        commit=MemoryCommit(s.ODD, 4, 2**40, Lease(s.NODE, 12.5)),
        boundary=8,
        due_at=0.1 + 0.2,
        attempts=2,
        last_error=s.ODD,
        forget=True,
    ),
    s.dirty_turn(
        2**40, owner=s.OTHER, said_at=0.1 + 0.2, handle=s.ODD, words=TurnText(EVERY_PART, (TextPart(s.LONG),))
    ),
    s.fact(
        "fct_full",
        owner=s.OTHER,
        key=s.ODD,
        text=s.ODD,
        said_at=0.1 + 0.2,
        created_at=0.5,
        updated_at=0.75,
        pinned=True,
        vector=bytes(range(256)),
    ),
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
        defaults = [
            (type(row), field.name)
            for row in FULL
            for field in fields(row)
            if field.default is not MISSING and getattr(row, field.name) == field.default
        ]
        assert defaults == [(Fact, "n")]

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
            tx.drop_dirty_turns(s.SID, 9)
            tx.drop_fact(FactId("fct_1"))
            tx.drop_session_facts(s.SID)

        for _ in range(2):
            await store.transact(erase)
