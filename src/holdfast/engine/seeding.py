"""Sessions made of plain words, as many as somebody wants to measure with. The same plan always makes the same ones."""

import random
from collections.abc import Callable
from typing import Final

from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.parts import Text
from holdfast.core.session import Message, Session
from holdfast.core.values import dataclass
from holdfast.engine.book import edits
from holdfast.ports import Store, Tx

COMMON: Final = "tide"
"""In every text."""
RARE: Final = "harbour"
"""In one session of a thousand."""
_WORDS: Final = (
    "anchor beacon canvas delta ember fathom gully harvest island jetty kelp lantern meadow needle orchard pebble "
    "quarry ribbon sail timber upland valley willow yonder zephyr rope knot ledger morning window paper kitchen garden"
)
_LENGTH: Final = 30
"""Words of a message."""
_BATCH: Final = 4000
"""Messages in one transaction."""

Report = Callable[[int, int], None]
"""Told how many sessions are there, and of how many."""


@dataclass(frozen=True, slots=True)
class Plan:
    sessions: int
    messages: int
    """Of each session, questions and answers in turn."""
    longest: int = 0
    """One session more, with so many messages."""

    @property
    def total(self) -> int:
        return self.sessions + (self.longest > 0)

    def messages_of(self, n: int) -> int:
        return self.messages if n < self.sessions else self.longest


async def seed(store: Store, plan: Plan, now: float, report: Report = lambda done, total: None) -> None:
    """`now`: when the newest of them was last used. For a store that has none of them yet."""
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
                edits.adopt(tx, one, messages, ())

        await store.transact(keep)
        report(at, plan.total)


def session(plan: Plan, n: int, at: float, chance: random.Random) -> tuple[Session, list[Message]]:
    """The n-th, last used at that time."""
    sid = session_id(n)
    messages: list[Message] = []
    for k in range(plan.messages_of(n)):
        parent = messages[-1].id if messages else None
        parts = (Text(_words(chance, _LENGTH, n)),)
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
