"""Full-text search, newest first. Ordering by recency streams from the end of the index and stops when the page is
full; rank would have to weigh every hit of the commonest word.

One document is a title or the words of one message; all words of a query must be in one document. If the words as they
were typed do not fill the first page, the last one is taken as the beginning of a word.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from typing import Final

from holdfast.core.ids import MessageId, OwnerId, SessionId

_GAP: Final = "\u200b"
"""Put behind characters of scripts that are written without spaces, so that each is a word and two words are a
phrase."""
_UNSPACED: Final = re.compile(
    "([\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_OPEN, _CLOSE = "\ue000", "\ue001"
_NOT_KEPT: Final = dict.fromkeys(map(ord, ("\x00", _OPEN, _CLOSE)), " ")
_MAX_WORDS: Final = 32
_MAX_QUERY: Final = 1000
_EXCERPT_WORDS: Final = 24
_EXCERPT: Final = 240
"""Characters; a 'word' may be a page of base64."""

Found = tuple[int, SessionId, MessageId | None]


def document(text: str) -> str:
    """`text` as it is indexed."""
    text = text.translate(_NOT_KEPT)
    return text if text.isascii() else _UNSPACED.sub(rf"\1{_GAP}", text)


def query(text: str) -> tuple[str, str] | None:
    """FTS5 expressions for what a person typed: as whole words, and with the last one as a prefix. Words are quoted, so
    that nothing in them is syntax. None: there is no word.

    The second takes as long as there are documents with any word it stands for, since FTS5 gathers them all before the
    first; the schema has indexes for 2 to 4 letters, and of one letter no prefix is made."""
    words = [word for word in document(text[:_MAX_QUERY]).split() if _has_letters(word)][:_MAX_WORDS]
    if not words:
        return None
    whole = " ".join('"' + word.replace('"', '""') + '"' for word in words)
    return whole, whole if len(words[-1]) == 1 else f"{whole} *"


def hits(db: sqlite3.Connection, owner: OwnerId, match: str, before: int | None) -> Iterator[Found]:
    """Every document that matches, newest first."""
    rows = db.execute(
        "SELECT docs.n, session_id, message_id FROM words CROSS JOIN docs ON docs.n = words.rowid "
        "WHERE words MATCH ? AND words.rowid < ? AND docs.owner = ? ORDER BY words.rowid DESC",
        (match, 2**62 if before is None else before, owner),
    )
    try:
        yield from rows
    finally:
        rows.close()


def has_newer(db: sqlite3.Connection, sid: SessionId, match: str, since: int) -> bool:
    """Whether the session was on an earlier page: it has a hit from `since` on."""
    found = db.execute(
        "SELECT 1 FROM docs CROSS JOIN words ON words.rowid = docs.n "
        "WHERE docs.session_id = ? AND docs.n >= ? AND words MATCH ? LIMIT 1",
        (sid, since, match),
    )
    return found.fetchone() is not None


def excerpt(db: sqlite3.Connection, match: str, n: int) -> str:
    """A short piece of document `n` with the hit in it."""
    piece = f"snippet(words, 0, '{_OPEN}', '{_CLOSE}', '…', {_EXCERPT_WORDS})"
    row = db.execute(f"SELECT {piece} FROM words WHERE words MATCH ? AND rowid = ?", (match, n)).fetchone()
    if row is None:
        return ""
    text: str = row[0]
    hit = max(text.find(_OPEN), 0)
    if len(text) > _EXCERPT:
        start = max(hit - _EXCERPT // 3, 0)
        text = ("…" if start else "") + text[start : start + _EXCERPT] + "…"
    for mark in (_OPEN, _CLOSE, _GAP):
        text = text.replace(mark, "")
    return " ".join(text.split())


def encodable(value: str) -> str:
    """Without lone surrogates, which UTF-8 cannot carry."""
    return value.encode("utf-8", "replace").decode()


def _has_letters(word: str) -> bool:
    return any(unicodedata.category(char)[0] in "LN" for char in word)
