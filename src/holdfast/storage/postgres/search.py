"""Full-text search, newest first. Words are cut and folded here, so that a match does not depend on the server's locale
and dictionaries; PostgreSQL only keeps and finds them.

One document is a title or the words of one message; all words of a query must be in one document. If the words as they
were typed do not fill the first page, the last one is taken as the beginning of a word.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED: Final = re.compile(
    "[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts that are written without spaces: each character is a word."""
_LONGEST: Final = 60
"""Characters of a word that count; a 'word' may be a page of base64."""
_MOST: Final = 40_000
"""Different words of a document that can be found."""
_MAX_WORDS: Final = 32
_MAX_QUERY: Final = 1000
_EXCERPT: Final = 240


def words(text: str) -> list[str]:
    """The different words of a document, folded."""
    found: dict[str, None] = {}
    for _, word in _cut(text):
        found[word] = None
        if len(found) >= _MOST:
            break
    return list(found)


def query(text: str) -> tuple[str, str] | None:
    """Two tsqueries for what a person typed: as whole words, and with the last one as a prefix. None: there is no
    word. Words are quoted, so that nothing in them is syntax."""
    typed = [word for _, word in _cut(text[:_MAX_QUERY])][:_MAX_WORDS]
    if not typed:
        return None
    whole = " & ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in typed)
    return whole, whole if len(typed[-1]) == 1 else f"{whole}:*"


def unspaced(text: str) -> Sequence[str]:
    """Stretches of scripts without spaces, which must be found as they stand: their characters alone say little."""
    return [each for each in re.findall(f"(?:{_UNSPACED.pattern})+", text[:_MAX_QUERY]) if len(each) > 1]


def excerpt(text: str, match: str, typed: str) -> str:
    """A short piece of the document with the hit in it."""
    sought = [word for _, word in _cut(typed[:_MAX_QUERY])]
    whole, beginning = set(sought), sought[-1] if match.endswith(":*") else None
    hit = 0
    for place, word in _cut(text):
        if word in whole or (beginning is not None and word.startswith(beginning)):
            hit = place
            break
    start = max(hit - _EXCERPT // 3, 0)
    piece = ("…" if start else "") + text[start : start + _EXCERPT] + ("…" if start + _EXCERPT < len(text) else "")
    return " ".join(piece.replace("\x00", " ").split())


def _cut(text: str) -> Iterator[tuple[int, str]]:
    for match in _WORD.finditer(text):
        said, at = match.group(), match.start()
        if said.isascii():
            yield at, said[:_LONGEST].lower()
            continue
        for piece in _pieces(said):
            folded = _fold(piece)
            if folded:
                yield at + said.index(piece), folded[:_LONGEST]


def _pieces(said: str) -> Iterator[str]:
    at = 0
    for match in _UNSPACED.finditer(said):
        if match.start() > at:
            yield said[at : match.start()]
        yield match.group()
        at = match.end()
    if at < len(said):
        yield said[at:]


def _fold(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in plain if unicodedata.category(char) != "Mn")
