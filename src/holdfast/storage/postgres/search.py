"""Words and queries for PostgreSQL's full-text search. Words are split and normalized here, so that a match does not
depend on the server's locale and dictionaries; PostgreSQL only stores and finds them.

One document is a title or the text of one message; all words of a query must be in one document.
Whether the last word counts as a prefix, and one hit for each session: `storage.sql.search`.
"""

import re
from collections.abc import Sequence
from typing import Final

from holdfast.storage.sql.dialect import TextQuery
from holdfast.storage.sql.text_words import MAX_QUERY, MAX_WORDS, UNSPACED, cut_excerpt, split_words

_MAX_DISTINCT: Final = 40_000  # Distinct words of a document that are indexed

MATCHES: Final = """
    SELECT n, session_id, message_id, CASE WHEN ? THEN text ELSE left(text, ?) END FROM docs
    WHERE owner = ? AND words @@ ?::tsquery AND n < ? ORDER BY n DESC LIMIT ?
"""
"""Titles and messages that match, newest first. Parameters: whether whole texts are wanted, how many characters
otherwise, the owner, the expression, the number of a document (only
older ones, with lower numbers, are found), the limit."""


def words(text: str) -> list[str]:
    """The distinct words of a document, normalized."""
    found: dict[str, None] = {}
    for _, word in split_words(text):
        found[word] = None
        if len(found) >= _MAX_DISTINCT:
            break
    return list(found)


def parse(text: str) -> tuple[TextQuery, TextQuery] | None:
    """Two tsqueries for what a person typed: as whole words, and with the last one as a prefix. None: there is no
    word. Words are quoted, so that nothing in them is syntax."""
    typed = [word for _, word in split_words(text[:MAX_QUERY])][:MAX_WORDS]
    if not typed:
        return None
    whole = " & ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in typed)
    prefix = whole if len(typed[-1]) == 1 else f"{whole}:*"
    return TextQuery(text, whole), TextQuery(text, prefix)


def unspaced(text: str) -> Sequence[str]:
    """Sequences in scripts without spaces, which must occur literally: single characters match too much."""
    return [each for each in re.findall(f"{UNSPACED.pattern}+", text[:MAX_QUERY]) if len(each) > 1]


def excerpt(text: str, query: TextQuery) -> str:
    """A short piece of the document around the match."""
    return cut_excerpt(text, query.text, is_prefix=query.expression.endswith(":*"))
