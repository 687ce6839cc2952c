"""Words of a text, normalized for comparison, and the piece of a text around one. Pure."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

MAX_WORDS: Final = 32  # Of a query
MAX_QUERY: Final = 250  # Characters. "a-a-a" is a phrase, which takes the longer the more words it has
EXCERPT: Final = 240  # Characters; a 'word' may be a page of base64
EXCERPT_READ: Final = 200_000
"""Characters of a document among which the match is looked for; with a later one, the excerpt is the beginning."""
_UNSPACED: Final = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
"""Scripts without spaces between words: each character is a word."""
_MAX_WORD: Final = 60  # Characters of a word that count, normalized
_READ: Final = 4 * _MAX_WORD  # Of which so many are looked at: a few characters are nothing when they are normalized
_WORD: Final = re.compile(rf"((?!\W)[{_UNSPACED}])|[^\W_{_UNSPACED}]{{1,{_READ}}}")


def split_words(text: str) -> Iterator[tuple[int, str]]:
    """Each word with its position."""
    end = -1  # Of what was read of a longer word
    for match in _WORD.finditer(text):
        word, at = match.group(), match.start()
        if at == end and match.lastindex is None:
            end = match.end()
            continue
        if len(word) == _READ:
            end = match.end()
        if word.isascii():
            yield at, word[:_MAX_WORD].lower()
            continue
        plain = unicodedata.normalize("NFKD", word.casefold())
        normalized = "".join(char for char in plain if unicodedata.category(char) != "Mn")
        if normalized:
            yield at, normalized[:_MAX_WORD]


def cut_excerpt(text: str, query: str, *, is_prefix: bool) -> str:
    """A short piece of the text around its first word that is one of the query. `is_prefix`: a word that only begins
    with the query's last one is too. Not more than `EXCERPT_READ` characters and an excerpt of the text are used."""
    sought = [word for _, word in split_words(query[:MAX_QUERY])]
    whole, prefix = set(sought), sought[-1] if is_prefix else None
    match = 0
    for position, word in split_words(text[:EXCERPT_READ]):
        if word in whole or (prefix is not None and word.startswith(prefix)):
            match = position
            break
    start = max(match - EXCERPT // 3, 0)
    piece = ("…" if start else "") + text[start : start + EXCERPT] + ("…" if start + EXCERPT < len(text) else "")
    return " ".join(piece.replace("\x00", " ").split())
