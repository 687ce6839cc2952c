"""Full-text search with FTS5, newest first. Ordering by recency streams from the end of the index and stops when the
page is full; ranking would have to weigh every hit of the most common word.

One document is a title or the text of one message; all words of a query must be in one document.
Whether the last word counts as a prefix, and one hit for each session: `storage.sql.search`.
"""

import sqlite3
import unicodedata
from typing import Final

from holdfast.storage.sql.dialect import TextQuery
from holdfast.storage.sql.text_words import EXCERPT, EXCERPT_READ, MAX_QUERY, MAX_WORDS, UNSPACED, cut_excerpt

_GAP: Final = "\u200b"
"""Inserted after each character of a script without spaces, so that each is indexed as a word; a word of several
characters is searched as a phrase."""
_OPEN, _CLOSE = "\ue000", "\ue001"
_DROPPED: Final = dict.fromkeys(map(ord, ("\x00", _OPEN, _CLOSE)), " ")
_EXCERPT_WORDS: Final = 24
_LONG: Final = 5000  # Characters of a document of which FTS5 makes no excerpt
_SLICE: Final = 10_000  # Characters that are changed at a time: nothing else of the process runs meanwhile

MATCHES: Final = """
    SELECT docs.n, session_id, message_id FROM words CROSS JOIN docs ON docs.n = words.rowid
    WHERE words MATCH ? AND words.rowid < ? AND docs.owner = ? ORDER BY words.rowid DESC
"""
"""Titles and messages that match, newest first. Parameters: the expression, the number of a document (only older ones,
with lower numbers, are found), the owner."""


def document(text: str) -> str:
    """The text as it is indexed."""
    if text.isascii():
        return text.translate(_DROPPED)
    slices = (text[at : at + _SLICE].translate(_DROPPED) for at in range(0, len(text), _SLICE))
    return "".join(UNSPACED.sub(rf"\g<0>{_GAP}", each) for each in slices)


def parse(text: str) -> tuple[TextQuery, TextQuery] | None:
    """FTS5 queries for what a person typed: as whole words, and with the last one as a prefix. Words are quoted, so
    that nothing in them is syntax. None: there is no word.

    A prefix query first gathers the documents of every word it stands for. The schema has indexes for prefixes of 2 to
    4 letters; a single letter is never a prefix."""
    words = [word for word in document(text[:MAX_QUERY]).split() if _has_letters(word)][:MAX_WORDS]
    if not words:
        return None
    whole = " ".join('"' + word.replace('"', '""') + '"' for word in words)
    prefix = whole if len(words[-1]) == 1 else f"{whole} *"
    return TextQuery(text, whole), TextQuery(text, prefix)


def excerpt(db: sqlite3.Connection, query: TextQuery, n: int) -> str:
    """A short piece of document `n` around the match: in a short document around most words of the query, in a long one
    around the first. FTS5 compares all matches with each other: a text of a megabyte would take it minutes."""
    begin = "SELECT substr(text, 1, ?) FROM docs WHERE n = ?"
    row = db.execute(begin, (2 * EXCERPT_READ, n)).fetchone()  # Twice, because of the gaps
    if row is not None and len(row[0]) > _LONG:
        return cut_excerpt(row[0].replace(_GAP, ""), query.text, is_prefix=query.expression.endswith(" *"))
    piece = f"snippet(words, 0, '{_OPEN}', '{_CLOSE}', '…', {_EXCERPT_WORDS})"
    row = db.execute(f"SELECT {piece} FROM words WHERE words MATCH ? AND rowid = ?", (query.expression, n)).fetchone()
    if row is None:
        return ""
    text: str = row[0]
    match = max(text.find(_OPEN), 0)
    if len(text) > EXCERPT:
        start = max(match - EXCERPT // 3, 0)
        text = ("…" if start else "") + text[start : start + EXCERPT] + "…"
    for mark in (_OPEN, _CLOSE, _GAP):
        text = text.replace(mark, "")
    return " ".join(text.split())


def replace_surrogates(value: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot carry."""
    return value.encode("utf-8", "replace").decode()


def _has_letters(word: str) -> bool:
    return any(unicodedata.category(char)[0] in "LN" for char in word)
