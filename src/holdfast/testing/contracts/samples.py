"""Values for the suites: short to write, different from one another, and one of each kind with every field set."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import MISSING, fields, replace
from typing import Any, Protocol, TypeVar

import anyio

from holdfast.core.events import Entry, Failure, TextDelta, Usage, entry
from holdfast.core.ids import LOCAL, ApprovalId, FactId, FileId, MessageId, NodeId, OwnerId, RunId, SessionId
from holdfast.core.memory_ledger import DirtyTurn, Ledger, MemoryCommit, TurnText
from holdfast.core.parts import FilePart, Json, Part, ReasoningPart, RememberedPart, TextPart, ToolPart
from holdfast.core.run import Intent, Lease, Recovery, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.ports.journal import Append, Journal
from holdfast.ports.store import Approval, Fact, Store, StoredFile, ToolGrant, Tx
from holdfast.ports.wakeups import Wakeups

T = TypeVar("T")
C = TypeVar("C", bound="AsyncClosable")

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

Row = Session | Message | Run | Approval | Compaction | StoredFile | ToolGrant | Ledger | DirtyTurn | Fact


class AsyncClosable(Protocol):
    async def close(self) -> None: ...


def opening(make: Callable[[], C]) -> Callable[[], AbstractAsyncContextManager[C]]:
    """A function that opens what `make` returns and closes it on leaving."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[C]:
        made = make()
        try:
            yield made
        finally:
            await made.close()

    return opened


def session(sid: str = SID, **changes: Any) -> Session:
    return replace(Session(SessionId(sid), LOCAL, created_at=1.0, updated_at=1.0), **changes)


def message(mid: str, sid: str = SID, *, text: str | None = None, **changes: Any) -> Message:
    """A settled root message of the user, unless told otherwise. `text` stands for its one part."""
    parts = () if text is None else (TextPart(text),)
    return replace(Message(MessageId(mid), LOCAL, SessionId(sid), "user", None, 1.0, parts=parts), **changes)


def run(rid: str = RID, sid: str = SID, **changes: Any) -> Run:
    """A queued run in the tree, unless told otherwise."""
    answer, question = MessageId(f"{rid}-answer"), MessageId(f"{rid}-question")
    base = Run(
        RunId(rid), LOCAL, SessionId(sid), answer, question, "chat", None, None, "detached", 1.0, rank=1, in_tree=True
    )
    return replace(base, **changes)


def approval(aid: str, rid: str = RID, sid: str = SID, **changes: Any) -> Approval:
    base = Approval(ApprovalId(aid), LOCAL, RunId(rid), SessionId(sid), "call_1", "shell", {}, "", 1.0)
    return replace(base, **changes)


def stored_file(fid: str, **changes: Any) -> StoredFile:
    base = StoredFile(FileId(fid), LOCAL, f"digest of {fid}", f"{fid}.txt", "text/plain", 3, created_at=1.0)
    return replace(base, **changes)


def compaction(mid: str, sid: str = SID, summary: str = "before") -> Compaction:
    return Compaction(SessionId(sid), LOCAL, MessageId(mid), summary, 1.5)


def every_part(text: str = ODD) -> tuple[Part, ...]:
    data: Json = {"path": text, "n": [1, 2.5, None, True, {"": []}]}
    return (
        TextPart(text),
        TextPart(""),
        ReasoningPart(text),
        ReasoningPart("", provider={"signature": text}),
        ToolPart("call_1", text, data, "done", data, True, text, 12, data),
        ToolPart("call_2", "shell", text, "pending"),
        ToolPart("call_3", "shell", None, "not_run", result=[], duration_ms=0),
        FilePart(FileId("file_1"), text, "text/plain", 0),
        RememberedPart(({"text": text, "source": "notes"},)),
        RememberedPart(()),
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
    aid, rid, sid = ApprovalId("apr_full"), RunId("run_full"), SessionId("ses_full")
    args: Json = {"command": [ODD, 1, None]}
    return Approval(aid, OTHER, rid, sid, ODD, ODD, args, ODD, 0.1 + 0.2, "always", 0.5, ODD)


def full_file() -> StoredFile:
    return stored_file("file_1", owner=OTHER, name=ODD, media_type="", size=2**40, created_at=0.1 + 0.2)


def full_compaction() -> Compaction:
    return Compaction(SessionId("ses_full"), OTHER, MessageId("msg_full"), ODD, 0.1 + 0.2)


def full_ledger() -> Ledger:
    return Ledger(
        SessionId("ses_full"),
        OTHER,
        completed=9,
        committed=3,
        applied=2,
        handle=ODD,
        told=("notes", ODD),
        commit=MemoryCommit(ODD, 4, 2**40, Lease(NODE, 12.5)),
        boundary=8,
        due_at=0.1 + 0.2,
        attempts=2,
        last_error=ODD,
        forget=True,
    )


def dirty_turn(n: int, **changes: Any) -> DirtyTurn:
    question, answer = MessageId(f"question_{n}"), MessageId(f"answer_{n}")
    return replace(DirtyTurn(SID, LOCAL, n, RunId(f"run_{n}"), question, answer, said_at=1.0), **changes)


def full_dirty_turn() -> DirtyTurn:
    text = TurnText(every_part(), (TextPart(LONG),))
    return dirty_turn(2**40, handle=ODD, words=text, said_at=0.1 + 0.2, owner=OTHER)


def fact(fid: str, **changes: Any) -> Fact:
    """With its id as its key, unless told otherwise."""
    base = Fact(FactId(fid), LOCAL, fid, f"Something about {fid}", SID, MessageId("msg_1"), 1.0, 1.0, 1.0)
    return replace(base, **changes)


def full_fact() -> Fact:
    vector = bytes(range(256))
    times = {"said_at": 0.1 + 0.2, "created_at": 0.5, "updated_at": 0.75}
    return fact("fct_full", owner=OTHER, key=ODD, text=ODD, pinned=True, vector=vector, **times)


def left_out(value: Row) -> list[str]:
    """Names of fields that still have their default: a round trip of those would show nothing."""
    return [
        field.name
        for field in fields(value)
        if field.default is not MISSING and getattr(value, field.name) == field.default
    ]


def write(tx: Tx, rows: Iterable[Row]) -> None:
    puts: dict[type, Callable[[Any], None]] = {
        Session: tx.put_session,
        Message: tx.put_message,
        Run: tx.put_run,
        Approval: tx.put_approval,
        Compaction: tx.put_compaction,
        StoredFile: tx.put_file,
        ToolGrant: tx.put_grant,
        Ledger: tx.put_ledger,
        DirtyTurn: tx.put_dirty_turn,
        Fact: tx.put_fact,
    }
    for row in rows:
        puts[type(row)](row)


async def follow(
    write: Callable[[str], Awaitable[None]], read: Callable[[T | None], Awaitable[Sequence[T]]]
) -> list[T]:
    """What a reader finds that goes on from the last item while eight tasks write ten names each."""
    seen: list[T] = []

    async def write_ten(who: int) -> None:
        for n in range(10):
            await write(f"{who}_{n}")

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            for who in range(8):
                group.start_soon(write_ten, who)
            while len(seen) < 80:
                seen += await read(seen[-1] if seen else None)
    return seen


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
