"""Fills a data directory with one long session or many empty ones, without running any model."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio

from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.session import Message, Role, Session
from holdfast.ports.store import Tx
from holdfast.storage.sqlite import open_embedded
from holdfast.system import SystemClock

LONG = SessionId("ses_long")


def seed_messages(path: Path, count: int) -> None:
    """One session of alternating user and assistant messages; `count` is even."""

    def fill(tx: Tx) -> None:
        start = tx.now - count
        head = MessageId(f"msg_{count:06}")
        tx.put_session(Session(LONG, LOCAL, start, tx.now, title="A long one", titled_by="person", head=head))
        parent: MessageId | None = None
        for n in range(1, count + 1):
            role: Role = "user" if n % 2 else "assistant"
            mid = MessageId(f"msg_{n:06}")
            more = "\n\n- a list\n- of two with `code`\n\nAnd a last line." if n % 10 == 0 else ""
            parts = (TextPart(f"Message number {n}.{more}"),)
            tx.put_message(Message(mid, LOCAL, LONG, role, parent, start + n, parts=parts))
            parent = mid

    _transact(path, fill)


def seed_sessions(path: Path, count: int) -> None:
    """Empty sessions, the last one the newest."""

    def fill(tx: Tx) -> None:
        for n in range(1, count + 1):
            at = tx.now - (count - n) * 3600
            tx.put_session(Session(SessionId(f"ses_{n:06}"), LOCAL, at, at, title=f"Session {n}", titled_by="person"))

    _transact(path, fill)


def _transact(path: Path, work: Callable[[Tx], None]) -> None:
    async def write() -> None:
        directory, store, journal = open_embedded(path, SystemClock())
        try:
            await store.transact(work)
        finally:
            await journal.close()
            await store.close()
            directory.close()

    with ThreadPoolExecutor(1) as executor:  # Playwright runs an event loop in this thread
        executor.submit(anyio.run, write).result()
