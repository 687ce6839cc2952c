"""Short excerpts of messages: what a question is about, and where a text is found. How messages are searched:
`engine.messages`."""

from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.core.json_limits import STEP
from holdfast.core.parts import FilePart, Part, plain_text

_LENGTH: Final = 140
_LEAD: Final = 40  # Characters before what was found
_READ: Final = 2000  # Characters in which the beginning is looked for

_VARIANTS: Final = (
    *("\u0131i", "\u017fs", "\xb5\u03bc", "\u0345\u03b9", "\u1fbe\u03b9", "\u1fd3\u0390", "\u1fe3\u03b0"),
    *("\u03d0\u03b2", "\u03f5\u03b5", "\u03d1\u03b8", "\u03f0\u03ba", "\u03d6\u03c0", "\u03f1\u03c1"),
    *("\u03c2\u03c3", "\u03d5\u03c6", "\u1c80\u0432", "\u1c81\u0434", "\u1c82\u043e", "\u1c83\u0441"),
    *("\u1c84\u0442", "\u1c85\u0442", "\u1c86\u044a", "\u1c87\u0463", "\u1c88\ua64b", "\u1e9b\u1e61", "\ufb06\ufb05"),
)
"""Lower-case letters with the same capital as another, such as the two sigmas, and that other."""


def beginning(parts: Sequence[Part]) -> str:
    """The first words, or else the names of the files."""
    text = plain_text(parts)[:_READ] or ", ".join(part.name for part in parts if isinstance(part, FilePart))
    return _shorten(" ".join(text.split()))


def normalize_query(query: str) -> str:
    """What `around` looks for, ignoring case and how the words of the query are spaced."""
    return _fold_case(" ".join(query.split()))


def around(parts: Sequence[Part], wanted: str) -> str | None:
    """What is around the first match of a normalized query in the text of a message, or None. Its time grows with the
    text alone, and other threads run in between."""
    window, dropped = "", 0
    pieces = _collapsed(plain_text(parts))
    for piece in pieces:
        keep = len(wanted) - 1 + _LEAD
        dropped += max(0, len(window) - keep)
        window = window[-keep:] + piece
        at = _fold_case(window).find(wanted)
        if at < 0:
            continue
        start = max(0, at - _LEAD)
        is_cut = dropped + start > 0
        if is_cut:
            start = window.find(" ", start, at) + 1 or at
        while len(window) < start + _READ and (piece_after := next(pieces, None)) is not None:
            window += piece_after
        return _shorten(("…" if is_cut else "") + window[start : start + _READ].strip())
    return None


def _collapsed(text: str) -> Iterator[str]:
    """The text in pieces, with one space for each run of whitespace and none at the beginning."""
    is_spaced = True
    for at in range(0, len(text), STEP):
        piece = " ".join(f".{text[at : at + STEP]}.".split())[1:-1]  # The dots keep the spaces at both ends
        if is_spaced:
            piece = piece.removeprefix(" ")
        if piece:
            is_spaced = piece.endswith(" ")
            yield piece


def _fold_case(text: str) -> str:
    """The text in lower case, with as many characters."""
    if text.isascii():
        return text.lower()
    lower = text.replace("\u0130", "i").replace("\u03a3", "\u03c3").lower()
    for variant, letter in _VARIANTS:
        lower = lower.replace(variant, letter)
    return lower


def _shorten(text: str) -> str:
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH].rstrip()}…"
