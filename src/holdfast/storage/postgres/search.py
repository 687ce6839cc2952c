"""Words and queries for PostgreSQL's full-text search. Words are split and normalized here, so that a match does not
depend on the server's locale and dictionaries; PostgreSQL only stores and finds them.

One document is a title or the text of one message; all words of a query must be in one document.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.storage.sql.dialect import TextQuery

_WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED: Final = re.compile(
    "[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts without spaces between words: each character is a word."""
_MAX_WORD: Final = 60  # Characters of a word that count; a 'word' may be a page of base64
_MAX_DISTINCT: Final = 40_000  # Distinct words of a document that are indexed
_MAX_WORDS: Final = 32
_MAX_QUERY: Final = 1000
_EXCERPT: Final = 240

MATCHES: Final = """
    SELECT n, session_id, message_id, text FROM docs
    WHERE owner = ? AND words @@ ?::tsquery AND n < ? ORDER BY n DESC LIMIT ?
"""
"""Titles and messages that match, newest first: owner, expression, the number that they are below, limit."""


def words(text: str) -> list[str]:
    """The distinct words of a document, normalized."""
    found: dict[str, None] = {}
    for _, word in _split(text):
        found[word] = None
        if len(found) >= _MAX_DISTINCT:
            break
    return list(found)


def parse(text: str) -> tuple[TextQuery, TextQuery] | None:
    """Two tsqueries for what a person typed: as whole words, and with the last one as a prefix. None: there is no
    word. Words are quoted, so that nothing in them is syntax."""
    typed = [word for _, word in _split(text[:_MAX_QUERY])][:_MAX_WORDS]
    if not typed:
        return None
    whole = " & ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in typed)
    prefix = whole if len(typed[-1]) == 1 else f"{whole}:*"
    return TextQuery(text, whole), TextQuery(text, prefix)


def unspaced(text: str) -> Sequence[str]:
    """Sequences in scripts without spaces, which must occur literally: single characters match too much."""
    return [each for each in re.findall(f"(?:{_UNSPACED.pattern})+", text[:_MAX_QUERY]) if len(each) > 1]


def excerpt(text: str, query: TextQuery) -> str:
    """A short piece of the document around the match."""
    sought = [word for _, word in _split(query.text[:_MAX_QUERY])]
    whole, prefix = set(sought), sought[-1] if query.expression.endswith(":*") else None
    match = 0
    for position, word in _split(text):
        if word in whole or (prefix is not None and word.startswith(prefix)):
            match = position
            break
    start = max(match - _EXCERPT // 3, 0)
    piece = ("…" if start else "") + text[start : start + _EXCERPT] + ("…" if start + _EXCERPT < len(text) else "")
    return " ".join(piece.replace("\x00", " ").split())


def _split(text: str) -> Iterator[tuple[int, str]]:
    for match in _WORD.finditer(text):
        word, at = match.group(), match.start()
        if word.isascii():
            yield at, word[:_MAX_WORD].lower()
            continue
        for piece in _pieces(word):
            plain = unicodedata.normalize("NFKD", piece.casefold())
            normalized = "".join(char for char in plain if unicodedata.category(char) != "Mn")
            if normalized:
                yield at + word.index(piece), normalized[:_MAX_WORD]


def _pieces(word: str) -> Iterator[str]:
    at = 0
    for match in _UNSPACED.finditer(word):
        if match.start() > at:
            yield word[at : match.start()]
        yield match.group()
        at = match.end()
    if at < len(word):
        yield word[at:]
