"""Generates sessions for benchmarks. The same plan always generates the same sessions."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.session import Message, Session
from holdfast.engine.transactions import session_edits
from holdfast.ports.store import Store, Tx
from holdfast.storage.sqlite import open_embedded
from holdfast.system import SystemClock

COMMON: Final = "tide"  # In every text
RARE: Final = "harbour"  # In one session of a thousand
_WORDS: Final = (
    "anchor beacon canvas delta ember fathom gully harvest island jetty kelp lantern meadow needle orchard pebble "
    "quarry ribbon sail timber upland valley willow yonder zephyr rope knot ledger morning window paper kitchen garden"
)
_LENGTH: Final = 30  # Words of a message
_BATCH: Final = 4000  # Messages in one transaction

Report = Callable[[int, int], None]  # Called with the number of sessions stored so far and the total


@dataclass(frozen=True, slots=True)
class Plan:
    sessions: int
    messages: int  # Messages per session, questions and answers alternating
    longest: int = 0  # Messages of one additional session; 0 adds none

    @property
    def total(self) -> int:
        return self.sessions + (self.longest > 0)

    def messages_of(self, n: int) -> int:
        return self.messages if n < self.sessions else self.longest


async def seed_directory(path: Path, plan: Plan, report: Report) -> None:
    """Fills a new data directory."""
    clock = SystemClock()
    data, store, journal = open_embedded(path, clock)
    try:
        await seed(store, plan, clock.now(), report)
    finally:
        await journal.close()
        await store.close()
        data.close()


async def seed(store: Store, plan: Plan, now: float, report: Report = lambda done, total: None) -> None:
    """`now`: when the newest session was last used. The store must have none of them yet."""
    chance = random.Random(plan.sessions)
    at = 0
    while at < plan.total:
        size, first = 0, at
        while at < plan.total and (size == 0 or size + plan.messages_of(at) <= _BATCH):
            size += plan.messages_of(at)
            at += 1
        made = [session(plan, n, now - (plan.total - n), chance) for n in range(first, at)]

        def keep(tx: Tx, made: list[tuple[Session, list[Message]]] = made) -> None:
            for one, messages in made:
                session_edits.adopt(tx, one, messages, ())

        await store.transact(keep)
        report(at, plan.total)


def session(plan: Plan, n: int, at: float, chance: random.Random) -> tuple[Session, list[Message]]:
    """The n-th, last used at that time."""
    sid = session_id(n)
    messages: list[Message] = []
    for k in range(plan.messages_of(n)):
        parent = messages[-1].id if messages else None
        parts = (TextPart(_words(chance, _LENGTH, n)),)
        role = "assistant" if k % 2 else "user"
        messages.append(Message(message_id(n, k), LOCAL, sid, role, parent, at, parts=parts))  # type: ignore[arg-type]
    head = messages[-1].id if messages else None
    return Session(sid, LOCAL, at, at, title=_words(chance, 4, n), titled_by="person", head=head), messages


def session_id(n: int) -> SessionId:
    return SessionId(f"ses_{n:08}")


def message_id(n: int, k: int) -> MessageId:
    return MessageId(f"msg_{n:08}_{k:06}")


def _words(chance: random.Random, count: int, n: int) -> str:
    words = _WORDS.split()
    chosen = chance.choices(words, k=count)
    chosen[0] = COMMON
    if n % 1000 == 7:
        chosen[-1] = RARE
    return " ".join(chosen)
