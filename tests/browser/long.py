"""A data directory with one long session or many short ones, written without asking any model."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio

from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.parts import Text
from holdfast.core.session import Message, Role, Session
from holdfast.ports import Tx
from holdfast.storage.sqlite import open_embedded
from holdfast.system import SystemClock

LONG = SessionId("ses_long")


def write(path: Path, messages: int) -> None:
    """Alternating user and assistant, the last of them an answer."""
    _transact(path, lambda tx: _fill(tx, messages))


def write_sessions(path: Path, sessions: int) -> None:
    """Empty ones, the last of them the newest."""
    _transact(path, lambda tx: _begin(tx, sessions))


def _transact(path: Path, work: Callable[[Tx], None]) -> None:
    with ThreadPoolExecutor(1) as elsewhere:  # the browser's driver has an event loop in this thread
        elsewhere.submit(anyio.run, _write, path, work).result()


def text_of(n: int) -> str:
    more = "\n\n- a list\n- of two with `code`\n\nAnd a last line." if n % 10 == 0 else ""
    return f"Message number {n}.{more}"


async def _write(path: Path, work: Callable[[Tx], None]) -> None:
    directory, store, journal = open_embedded(path, SystemClock())
    try:
        await store.transact(work)
    finally:
        await journal.close()
        await store.close()
        directory.close()


def _fill(tx: Tx, messages: int) -> None:
    start = tx.now - messages
    head = MessageId(f"msg_{messages:06}")
    tx.put_session(Session(LONG, LOCAL, start, tx.now, title="A long one", titled_by="person", head=head))
    parent: MessageId | None = None
    for n in range(1, messages + 1):
        role: Role = "user" if n % 2 else "assistant"
        mid = MessageId(f"msg_{n:06}")
        tx.put_message(Message(mid, LOCAL, LONG, role, parent, start + n, parts=(Text(text_of(n)),)))
        parent = mid


def _begin(tx: Tx, sessions: int) -> None:
    for n in range(1, sessions + 1):
        at = tx.now - (sessions - n) * 3600
        tx.put_session(Session(SessionId(f"ses_{n:06}"), LOCAL, at, at, title=f"Session {n}", titled_by="person"))
