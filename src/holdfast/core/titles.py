"""The title that a session has before a model writes one: the first words of its first message. Generated titles:
`engine.titles`."""

from collections.abc import Sequence
from typing import Final

from holdfast.core.parts import FilePart, Part, plain_text

_WORDS: Final = 8
_READ: Final = 2000  # Characters of a message in which its first words are looked for
_LONGEST: Final = 80  # Characters of the words


def first_words(parts: Sequence[Part]) -> str:
    """Of the text, or the name of a file that was sent without one."""
    words = plain_text(parts)[:_READ].split()
    if not words:
        return next((part.name[:_LONGEST] for part in parts if isinstance(part, FilePart)), "")
    return " ".join(words[:_WORDS])[:_LONGEST] + ("…" if len(words) > _WORDS else "")
