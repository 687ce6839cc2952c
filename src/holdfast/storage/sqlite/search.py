"""Full-text search with FTS5, newest first. Ordering by recency streams from the end of the index and stops when the
page is full; ranking would have to weigh every hit of the most common word.

One document is a title or the text of one message; all words of a query must be in one document.
"""

import re
import sqlite3
import unicodedata
from typing import Final

from holdfast.storage.sql.dialect import TextQuery

_GAP: Final = "\u200b"
"""Inserted after each character of a script without spaces, so that each is a word and two words are a phrase."""
_UNSPACED: Final = re.compile(
    "([\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_OPEN, _CLOSE = "\ue000", "\ue001"
_DROPPED: Final = dict.fromkeys(map(ord, ("\x00", _OPEN, _CLOSE)), " ")
_MAX_WORDS: Final = 32
_MAX_QUERY: Final = 1000
_EXCERPT_WORDS: Final = 24
_EXCERPT: Final = 240  # Characters; a 'word' may be a page of base64

MATCHES: Final = """
    SELECT docs.n, session_id, message_id FROM words CROSS JOIN docs ON docs.n = words.rowid
    WHERE words MATCH ? AND words.rowid < ? AND docs.owner = ? ORDER BY words.rowid DESC
"""
"""Titles and messages that match, newest first: expression, the number that they are below, owner."""


def document(text: str) -> str:
    """The text as it is indexed."""
    text = text.translate(_DROPPED)
    return text if text.isascii() else _UNSPACED.sub(rf"\1{_GAP}", text)


def parse(text: str) -> tuple[TextQuery, TextQuery] | None:
    """FTS5 queries for what a person typed: as whole words, and with the last one as a prefix. Words are quoted, so
    that nothing in them is syntax. None: there is no word.

    A prefix query first gathers the documents of every word it stands for. The schema has indexes for prefixes of 2 to
    4 letters; a single letter is never a prefix."""
    words = [word for word in document(text[:_MAX_QUERY]).split() if _has_letters(word)][:_MAX_WORDS]
    if not words:
        return None
    whole = " ".join('"' + word.replace('"', '""') + '"' for word in words)
    prefix = whole if len(words[-1]) == 1 else f"{whole} *"
    return TextQuery(text, whole), TextQuery(text, prefix)


def excerpt(db: sqlite3.Connection, expression: str, n: int) -> str:
    """A short piece of document `n` around the match."""
    piece = f"snippet(words, 0, '{_OPEN}', '{_CLOSE}', '…', {_EXCERPT_WORDS})"
    row = db.execute(f"SELECT {piece} FROM words WHERE words MATCH ? AND rowid = ?", (expression, n)).fetchone()
    if row is None:
        return ""
    text: str = row[0]
    match = max(text.find(_OPEN), 0)
    if len(text) > _EXCERPT:
        start = max(match - _EXCERPT // 3, 0)
        text = ("…" if start else "") + text[start : start + _EXCERPT] + "…"
    for mark in (_OPEN, _CLOSE, _GAP):
        text = text.replace(mark, "")
    return " ".join(text.split())


def encodable(value: str) -> str:
    """The text without lone surrogates, which UTF-8 cannot carry."""
    return value.encode("utf-8", "replace").decode()


def _has_letters(word: str) -> bool:
    return any(unicodedata.category(char)[0] in "LN" for char in word)
