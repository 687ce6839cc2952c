"""Values for the suites: short to write, different from one another, and one of each kind with every field set."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import MISSING, fields
from typing import Any, TypeVar, assert_never

from holdfast.core.events import Entry, Failure, TextDelta, Usage, entry
from holdfast.core.ids import LOCAL, ApprovalId, FactId, FileId, MessageId, NodeId, OwnerId, RunId, SessionId
from holdfast.core.ledger import Commit, DirtyTurn, Ledger
from holdfast.core.parts import File, Json, Part, Reasoning, Remembered, Text, Tool
from holdfast.core.run import Intent, Lease, Recovery, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.ports import Append, Approval, Fact, Journal, Store, StoredFile, Tx, Wakeups

T = TypeVar("T")

MakeStore = Callable[[], AbstractAsyncContextManager[Store]]
MakeJournal = Callable[[], AbstractAsyncContextManager[Journal]]
MakeWakeups = Callable[[], AbstractAsyncContextManager[Wakeups]]

GUARD = 30.0
"""Seconds after which a test that waits for something has failed."""

OTHER = OwnerId("somebody-else")
NODE = NodeId("node_1")
SID = SessionId("ses_1")
RID = RunId("run_1")

ODD = "Grüße 🌊 \x00 'quoted' \"twice\" \\ \t\r\n\u2028 漢字 e\u0301 % _ * ; --"
"""What a careless encoding, a C string or an unescaped query would change."""
LONG = "word " * 200_000

Row = Session | Message | Run | Approval | Compaction | StoredFile


def session(sid: str = SID, **changes: Any) -> Session:
    base: dict[str, Any] = {"id": SessionId(sid), "owner": LOCAL, "created_at": 1.0, "updated_at": 1.0}
    return Session(**(base | changes))


def message(mid: str, sid: str = SID, **changes: Any) -> Message:
    """A settled root message of the user, unless told otherwise. `text` stands for its one part."""
    words = changes.pop("text", None)
    base: dict[str, Any] = {
        "id": MessageId(mid),
        "owner": LOCAL,
        "session_id": SessionId(sid),
        "role": "user",
        "parent_id": None,
        "created_at": 1.0,
        "parts": () if words is None else (Text(words),),
    }
    return Message(**(base | changes))


def run(rid: str = RID, sid: str = SID, **changes: Any) -> Run:
    """A queued run in the tree, unless told otherwise."""
    base: dict[str, Any] = {
        "id": RunId(rid),
        "owner": LOCAL,
        "session_id": SessionId(sid),
        "message_id": MessageId(f"{rid}-answer"),
        "user_message_id": MessageId(f"{rid}-question"),
        "agent": "chat",
        "model": None,
        "settings": None,
        "lifetime": "detached",
        "created_at": 1.0,
        "rank": 1,
        "in_tree": True,
    }
    return Run(**(base | changes))


def approval(aid: str, rid: str = RID, sid: str = SID, **changes: Any) -> Approval:
    base: dict[str, Any] = {
        "id": ApprovalId(aid),
        "owner": LOCAL,
        "run_id": RunId(rid),
        "session_id": SessionId(sid),
        "call_id": "call_1",
        "name": "shell",
        "args": {},
        "reason": "",
        "created_at": 1.0,
    }
    return Approval(**(base | changes))


def stored_file(fid: str, **changes: Any) -> StoredFile:
    base: dict[str, Any] = {
        "id": FileId(fid),
        "owner": LOCAL,
        "sha256": f"digest of {fid}",
        "name": f"{fid}.txt",
        "media_type": "text/plain",
        "size": 3,
        "created_at": 1.0,
    }
    return StoredFile(**(base | changes))


def compaction(mid: str, sid: str = SID, summary: str = "before") -> Compaction:
    return Compaction(SessionId(sid), LOCAL, MessageId(mid), summary, 1.5)


def every_part(text: str = ODD) -> tuple[Part, ...]:
    data: Json = {"path": text, "n": [1, 2.5, None, True, {"": []}]}
    return (
        Text(text),
        Text(""),
        Reasoning(text),
        Reasoning("", provider={"signature": text}),
        Tool("call_1", text, data, "done", data, True, text, 12, data),
        Tool("call_2", "shell", text, "pending"),
        Tool("call_3", "shell", None, "not_run", result=[], duration_ms=0),
        File(FileId("file_1"), text, "text/plain", 0),
        Remembered(({"text": text, "source": "notes"},)),
        Remembered(()),
    )


def full_session() -> Session:
    return Session(
        SessionId("ses_full"),
        OTHER,
        created_at=0.1 + 0.2,
        updated_at=1_763_195_812.123457,
        title=ODD,
        titled_by="person",
        agent="coder",
        model="m/é",
        system=ODD,
        settings={"temperature": 0.1, "stop": [ODD], "none": None},
        previous_session_id=SessionId("ses_0"),
        pinned=True,
        archived=True,
        tags=("", ODD, "b"),
        project=ODD,
        head=MessageId("msg_9"),
        redo=(MessageId("msg_7"), MessageId("msg_8")),
        version=7,
        deleted_at=1.25,
    )


def full_message() -> Message:
    return Message(
        MessageId("msg_full"),
        OTHER,
        SessionId("ses_full"),
        "assistant",
        MessageId("msg_parent"),
        0.1 + 0.2,
        run_id=RunId("run_full"),
        status="interrupted",
        parts=every_part(),
        reason=ODD,
        error=Failure("model", ODD),
        recovery="pending",
        model="m/é",
        usage=Usage(1, 2**40, 0.1 + 0.2),
        key=ODD,
        in_tree=False,
        last_seq=2**40,
    )


def full_run() -> Run:
    return Run(
        RunId("run_full"),
        OTHER,
        SessionId("ses_full"),
        MessageId("msg_full"),
        MessageId("msg_parent"),
        agent="coder",
        model="m/é",
        settings={"effort": [ODD]},
        lifetime="attached",
        created_at=0.1 + 0.2,
        rank=2**40,
        in_tree=True,
        status="interrupted",
        epoch=3,
        lease=Lease(NodeId("node_1"), 12.5),
        connection=Lease(NodeId("node_2")),
        key=ODD,
        fingerprint=ODD,
        continues=RunId("run_0"),
        resumes=2,
        intent=Intent("failed", ODD, Failure("storage", ODD)),
        recovery=Recovery("pending", 1.125, 2),
        reason=ODD,
        finish_reason="stop",
        error=Failure("model", ODD),
        usage=Usage(0, 0, 0.0),
        started_at=0.5,
        ended_at=0.75,
        last_seq=99,
        pruned=True,
    )


def full_approval() -> Approval:
    return Approval(
        ApprovalId("apr_full"),
        OTHER,
        RunId("run_full"),
        SessionId("ses_full"),
        ODD,
        ODD,
        {"command": [ODD, 1, None]},
        ODD,
        0.1 + 0.2,
        "always",
        0.5,
        ODD,
    )


def full_ledger() -> Ledger:
    return Ledger(
        SessionId("ses_full"),
        OTHER,
        completed=9,
        committed=3,
        applied=2,
        handle=ODD,
        told=("notes", ODD),
        commit=Commit(ODD, 4, 2**40, Lease(NODE, 12.5)),
        boundary=8,
        due_at=0.1 + 0.2,
        attempts=2,
        last_error=ODD,
        forget=True,
    )


def dirty_turn(n: int, **changes: Any) -> DirtyTurn:
    base: dict[str, Any] = {
        "session_id": SID,
        "owner": LOCAL,
        "n": n,
        "run_id": RunId(f"run_{n}"),
        "user_message_id": MessageId(f"question_{n}"),
        "message_id": MessageId(f"answer_{n}"),
        "said_at": 1.0,
    }
    return DirtyTurn(**(base | changes))


def fact(fid: str, **changes: Any) -> Fact:
    """With its id as its key, unless told otherwise."""
    base: dict[str, Any] = {
        "id": FactId(fid),
        "owner": LOCAL,
        "key": fid,
        "text": f"Something about {fid}",
        "session_id": SID,
        "message_id": MessageId("msg_1"),
        "said_at": 1.0,
        "created_at": 1.0,
        "updated_at": 1.0,
    }
    return Fact(**(base | changes))


def full_fact() -> Fact:
    vector = bytes(range(256))
    times = {"said_at": 0.1 + 0.2, "created_at": 0.5, "updated_at": 0.75}
    return fact("fct_full", owner=OTHER, key=ODD, text=ODD, pinned=True, vector=vector, **times)


def left_out(value: Row | Ledger | DirtyTurn | Fact) -> list[str]:
    """Names of fields that still have their default: a round trip of those would show nothing."""
    return [
        field.name
        for field in fields(value)
        if field.default is not MISSING and getattr(value, field.name) == field.default
    ]


def write(tx: Tx, rows: Iterable[Row]) -> None:
    for row in rows:
        match row:
            case Session():
                tx.put_session(row)
            case Message():
                tx.put_message(row)
            case Run():
                tx.put_run(row)
            case Approval():
                tx.put_approval(row)
            case Compaction():
                tx.put_compaction(row)
            case StoredFile():
                tx.put_file(row)
            case _:
                assert_never(row)


async def put(store: Store, *rows: Row) -> None:
    """All rows in one transaction."""
    await store.transact(lambda tx: write(tx, rows))


async def pages(fetch: Callable[[T | None], Awaitable[Sequence[T]]], size: int) -> list[T]:
    """All items, page after page: `fetch` is given the last item so far. An adapter that goes round in circles fails
    here instead of keeping the test busy for ever."""
    items: list[T] = []
    for _ in range(1_000):
        page = await fetch(items[-1] if items else None)
        assert len(page) <= size
        if not page:
            return items
        items += page
    raise AssertionError("a thousand pages, and still no end")


def texts(first: int, *words: str) -> list[Entry]:
    return [entry(first + n, TextDelta(word)) for n, word in enumerate(words)]


def adding(rid: str, first: int, *words: str, epoch: int = 1) -> Append:
    """An append of one delta per word, the first with number `first`."""
    return Append(RunId(rid), epoch, texts(first, *words))
