"""Search by looking at everything, newest first: good for hundreds of messages, not for a hundred thousand."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from holdfast.core.ids import MessageId, OwnerId, SessionId
from holdfast.core.parts import plain_text
from holdfast.core.session import Session
from holdfast.ports import Hit
from holdfast.storage.memory.data import Data

_WORD: Final = re.compile(r"\w+")
_AROUND: Final = 80
"""Characters that an excerpt shows on each side of a hit."""


def search(data: Data, owner: OwnerId, text: str, limit: int, before: int | None) -> Sequence[Hit]:
    """All words must be in one title or one message, the last may be the beginning of one."""
    words = _WORD.findall(text.casefold())
    if not words:
        return []
    found: dict[SessionId, Hit] = {}
    for at, session, mid, said in _newest_first(data):
        if session.owner == owner and session.deleted_at is None and session.id not in found:
            place = _place(words, said)
            if place is not None:
                excerpt = said[max(0, place - _AROUND) : place + _AROUND]
                found[session.id] = Hit(session, mid, excerpt, at)
    return list(islice((hit for hit in found.values() if before is None or hit.at < before), limit))


def _newest_first(data: Data) -> Iterator[tuple[int, Session, MessageId | None, str]]:
    titles = [(at, sid, None) for sid, at in data.titles.items()]
    texts = [(at, data.messages[mid].session_id, mid) for mid, at in data.texts.items()]
    for at, sid, mid in sorted([*titles, *texts], key=lambda entry: entry[0], reverse=True):
        session = data.sessions.get(sid)
        if session is not None:
            yield at, session, mid, session.title if mid is None else plain_text(data.messages[mid].parts)


def _place(words: Sequence[str], said: str) -> int | None:
    """Where `said` has one of the words, or None if it does not have all."""
    places: dict[str, int] = {}
    for match in _WORD.finditer(said):
        places.setdefault(match.group().casefold(), match.start())
    *whole, last = words
    beginnings = [place for word, place in places.items() if word.startswith(last)]
    return min(beginnings) if beginnings and all(word in places for word in whole) else None
