"""Values for the suites: short to write, and different from one another."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import anyio

from holdfast.core.drafts import Draft
from holdfast.core.events import Entry, TextDelta, entry
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
from holdfast.core.memory_ledger import DirtyTurn, Ledger
from holdfast.core.parts import TextPart
from holdfast.core.personas import Persona
from holdfast.core.project import Project
from holdfast.core.run import Run
from holdfast.core.saved_prompts import SavedPrompt
from holdfast.core.session import Compaction, Message, Session
from holdfast.ports.journal import Append, Journal
from holdfast.ports.store import Approval, Fact, PushMessage, PushSubscription, Store, StoredFile, ToolGrant, Tx
from holdfast.ports.wakeups import Wakeups

T = TypeVar("T")
C = TypeVar("C", bound="AsyncClosable")

MakeStore = Callable[[], AbstractAsyncContextManager[Store]]
MakeJournal = Callable[[], AbstractAsyncContextManager[Journal]]
MakeWakeups = Callable[[], AbstractAsyncContextManager[Wakeups]]

GUARD = 30.0  # Seconds after which a test that waits for something has failed

OTHER = OwnerId("somebody-else")
NODE = NodeId("node_1")
SID = SessionId("ses_1")
RID = RunId("run_1")

ODD = "Grüße 🌊 \x00 'quoted' \"twice\" \\ \t\r\n\u2028 漢字 e\u0301 % _ * ; --"
"""What a careless encoding, a C string or an unescaped query would change."""
LONG = "word " * 200_000

Row = (
    Session
    | Message
    | Draft
    | SavedPrompt
    | Persona
    | Run
    | Approval
    | Compaction
    | StoredFile
    | ToolGrant
    | Ledger
    | DirtyTurn
    | Fact
    | PushSubscription
    | PushMessage
    | Project
)


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


def dirty_turn(n: int, **changes: Any) -> DirtyTurn:
    question, answer = MessageId(f"question_{n}"), MessageId(f"answer_{n}")
    return replace(DirtyTurn(SID, LOCAL, n, RunId(f"run_{n}"), question, answer, said_at=1.0), **changes)


def fact(fid: str, **changes: Any) -> Fact:
    """With its id as its key, unless told otherwise."""
    base = Fact(FactId(fid), LOCAL, fid, f"Something about {fid}", SID, MessageId("msg_1"), 1.0, 1.0, 1.0)
    return replace(base, **changes)


def push_subscription(pid: str, **changes: Any) -> PushSubscription:
    """One that wants everything, unless told otherwise."""
    keys, wants = ("key", "secret"), (True, True, True, True)
    address = f"https://push.example/{pid}"
    base = PushSubscription(SubscriptionId(pid), LOCAL, address, *keys, "Firefox", None, *wants, created_at=1.0)
    return replace(base, **changes)


def push_message(pid: str, **changes: Any) -> PushMessage:
    base = PushMessage(SubscriptionId(pid), RID, LOCAL, "done", SID, RID, created_at=1.0, due_at=1.0)
    return replace(base, **changes)


def project(pid: str, name: str | None = None, **changes: Any) -> Project:
    """Named as its id, unless told otherwise."""
    return replace(Project(ProjectId(pid), LOCAL, name or pid, created_at=1.0, updated_at=1.0), **changes)


def persona(pid: str, name: str | None = None, **changes: Any) -> Persona:
    """Named as its id, unless told otherwise."""
    return replace(Persona(PersonaId(pid), LOCAL, name or pid, 1.0, 1.0), **changes)


def prompt(pid: str, name: str | None = None, **changes: Any) -> SavedPrompt:
    """Named as its id, unless told otherwise."""
    return replace(SavedPrompt(PromptId(pid), LOCAL, name or pid, "", "text", 1.0, 1.0), **changes)


def write(tx: Tx, rows: Iterable[Row]) -> None:
    puts: dict[type, Callable[[Any], None]] = {
        Session: tx.put_session,
        Message: tx.put_message,
        Run: tx.put_run,
        Approval: tx.put_approval,
        Compaction: tx.put_compaction,
        Draft: tx.put_draft,
        SavedPrompt: tx.put_prompt,
        Persona: tx.put_persona,
        StoredFile: tx.put_file,
        ToolGrant: tx.put_grant,
        Ledger: tx.put_ledger,
        DirtyTurn: tx.put_dirty_turn,
        Fact: tx.put_fact,
        PushSubscription: tx.put_push_subscription,
        PushMessage: tx.put_push,
        Project: tx.put_project,
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
    here instead of keeping the test busy forever."""
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
