"""Every field of every row comes back as it was written."""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from holdfast.core.drafts import Draft
from holdfast.core.events import Usage
from holdfast.core.ids import (
    LOCAL,
    ApprovalId,
    FactId,
    FileId,
    MessageId,
    NodeId,
    OwnerId,
    PersonaId,
    ProjectId,
    PromptId,
    RunId,
    SessionId,
    SubscriptionId,
)
from holdfast.core.lease import Lease
from holdfast.core.memory_ledger import RESTS, DirtyTurn, Ledger, MemoryCommit, TurnText
from holdfast.core.parts import (
    FilePart,
    Json,
    Part,
    PlanEntry,
    PlanPart,
    ReasoningPart,
    RememberedPart,
    SteeredPart,
    TextPart,
    ToolPart,
)
from holdfast.core.personas import Persona
from holdfast.core.project import Project
from holdfast.core.run import Intent, Recovery, Run
from holdfast.core.saved_prompts import SavedPrompt
from holdfast.core.session import Compaction, Message, Session
from holdfast.ports.store import Approval, Fact, PushMessage, PushSubscription, Store, StoredFile, Tx
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
    PlanPart((PlanEntry(s.ODD, "in_progress", "high"), PlanEntry("", "pending"))),
    SteeredPart(MessageId("msg_9"), s.ODD),
)
VALUES: dict[Any, Callable[[int], Any]] = {
    str: lambda n: f"{s.ODD}{n}",
    int: lambda n: 2**40 + n,
    float: lambda n: 0.1 + 0.2 + n,
    bool: lambda n: True,
    bytes: lambda n: bytes(range(256)),
    Any: lambda n: [DATA, n],
    tuple[str, ...]: lambda n: ("", s.ODD, f"{n}"),
    tuple[MessageId, ...]: lambda n: (MessageId("msg_7"), MessageId("msg_8")),
    tuple[Part, ...]: lambda n: (*EVERY_PART, TextPart(f"{n}")),
    OwnerId: lambda n: s.OTHER,
    NodeId: lambda n: NodeId(f"node_{n}"),
    SessionId: lambda n: SessionId("ses_full"),
    MessageId: lambda n: MessageId(f"msg_{n}"),
    RunId: lambda n: RunId(f"run_{n}"),
    ApprovalId: lambda n: ApprovalId(f"apr_{n}"),
    FileId: lambda n: FileId(f"file_{n}"),
    FactId: lambda n: FactId(f"fct_{n}"),
    SubscriptionId: lambda n: SubscriptionId(f"push_{n}"),
    PersonaId: lambda n: PersonaId(f"per_{n}"),
    PromptId: lambda n: PromptId(f"pmt_{n}"),
    ProjectId: lambda n: ProjectId(f"prj_{n}"),
}
"""By the type of a field: a value that is not its default, and another one for each n."""


def full(kind: Any, n: int = 0) -> Any:
    """A value in which every field is set. `n` makes the values of two fields differ, so that none can be swapped."""
    if kind in VALUES:
        return VALUES[kind](n)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: full(hint, at) for at, (name, hint) in enumerate(get_type_hints(kind).items(), n)})
    choices = get_args(kind)
    return choices[-1] if get_origin(kind) is Literal else full(choices[0], n)  # otherwise `kind` is `X | None`


FULL: list[s.Row] = [
    full(Session),
    replace(full(Message), in_tree=False, persona={"name": s.LONG, "emoji": "🌊", "picture": "file_6"}),
    *map(full, (Run, Approval, StoredFile, Compaction, Ledger, DirtyTurn)),
    replace(full(Fact), n=0),  # the store numbers facts itself
    full(PushSubscription),
    full(PushMessage),
    full(Project),
    full(Draft),
    full(SavedPrompt),
    s.stored_file("file_6"),
    full(Persona),
]
PLAIN: list[s.Row] = [
    s.session("ses_full"),
    s.message("msg_0", "ses_full"),
    s.run("run_0", "ses_full"),
    s.approval("apr_0", sid="ses_full"),
    s.stored_file("file_0"),
    s.compaction("msg_2", "ses_full"),
    Ledger(SessionId("ses_full"), LOCAL),
    s.dirty_turn(2**40 + 2, session_id=SessionId("ses_full")),
    s.fact("fct_0"),
    s.push_subscription("push_0", endpoint=full(PushSubscription).endpoint),
    s.push_message("push_0", tag=full(PushMessage).tag, session_id=SessionId("ses_full")),
    s.project("prj_0"),
    Draft(s.OTHER, full(Draft).session_id, "", 1, 1.0),
    s.prompt("pmt_0"),
    s.stored_file("file_6"),
    s.persona("per_0"),
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
    s.run("run_full", intent=Intent("cancelled"), lease=Lease(s.NODE), connection=Lease(s.NODE), status="running"),
    s.run("run_full", recovery=Recovery("recovered"), status="failed", usage=Usage(1, 2)),
    s.run("run_full", recovery=Recovery("none", 5.0, 3), lease=Lease(s.NODE, 0.0), settings={}),
    s.run("run_full", rank=-5, in_tree=False, status="waiting", started_at=0.0, ended_at=0.0),
    s.approval("apr_full"),
    s.approval("apr_full", args=None, reason="\x00", decision="deny", decided_at=0.0, note="ü"),
    s.approval("apr_full", args=s.LONG, call_id="", name=""),
    s.stored_file("file_1", media_type="", size=0),
    Ledger(s.SID, LOCAL),
    Ledger(s.SID, LOCAL, due_at=0.0, last_error="", handle=""),
    Ledger(s.SID, LOCAL, due_at=RESTS, commit=MemoryCommit("notes", 1, 1)),
    Ledger(s.SID, LOCAL, commit=MemoryCommit("notes", 1, 2, Lease(s.NODE))),
    s.dirty_turn(1),
    s.dirty_turn(2, words=TurnText((), (TextPart(s.LONG),))),
    s.dirty_turn(3, handle="", words=TurnText((), ())),
    s.fact("fct_full", text="\x00", vector=b"\x00"),
    s.fact("fct_full", text=s.LONG),
    s.push_subscription("push_1", credential="", failed_at=0.0, failure=""),
    s.push_message("push_1", kind="failed"),
    s.project("prj_0"),
    s.project("prj_0", "\x00", color="", instructions=s.LONG, agent="", model="", settings=[], former_name=""),
    Draft(LOCAL, "ses_1", s.LONG, 2**40, -1.5),
    Draft(s.OTHER, "new", "\x00", 1, 0.0),
    s.prompt("pmt_0", text=s.LONG, description="\x00"),
    s.persona("per_0", "\x00", emoji="", model="", instructions=s.LONG, use_tools=False),
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
        Project: lambda: tx.project(row.id),
        Persona: lambda: tx.persona(row.id),
        SavedPrompt: lambda: tx.prompt(row.id),
        Draft: lambda: tx.draft(row.owner, row.session_id),
        Fact: lambda: (found := tx.fact(row.id)) and replace(found, n=row.n),  # the store numbers facts itself
        PushSubscription: lambda: tx.push_subscription(row.id),
        PushMessage: lambda: tx.push(row.subscription_id, row.tag),
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
        needed: list[s.Row] = [] if isinstance(row, Session) else [s.session(getattr(row, "session_id", s.SID))]
        if isinstance(row, Persona) and row.picture is not None:
            needed.append(s.stored_file(row.picture))
        await s.put(store, *needed, row)
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
