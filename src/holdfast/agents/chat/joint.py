"""Where a continued answer meets its partial. A model that was asked to go on may begin by repeating the last words;
what it repeats is left out, so that the two halves read as one text.

Text is held back only while it may still be a repetition. Not guaranteed: words that were meant twice across the
joint, in exactly the way a repetition looks, are taken for one.
"""

from typing import Final

_TAIL: Final = 2000
"""How far back a repetition may begin, besides the very beginning."""
_SURE: Final = 8
"""So many equal characters are no chance."""
_WORD: Final = 3
"""Fewer do if a whole word begins there: nobody writes "brownbrown", while "yel" + "low" shares one letter."""


class Joint:
    def __init__(self, partial: str) -> None:
        self._partial = partial
        first = max(0, len(partial) - _TAIL)
        self._starts = [0, *range(max(1, first), len(partial))] if partial else []
        self._held = ""
        self.done = not partial
        """Nothing is held back, and nothing will be."""

    def take(self, text: str) -> str:
        """What of the new text can be shown now."""
        if self.done:
            return text
        self._held += text
        held, partial = self._held, self._partial
        self._starts = [at for at in self._starts if _may_repeat(partial, at, held)]
        if any(len(partial) - at > len(held) for at in self._starts):
            return ""  # it may yet turn out to be the whole tail
        return self._release()

    def end(self) -> str:
        """No more text follows: what was held back and is no repetition."""
        if self.done:
            return ""
        cut_off = [at for at in self._starts if len(self._partial) - at > len(self._held)]
        if cut_off and len(self._held) >= _SURE:
            self.done = True
            return ""  # it repeated a piece and stopped
        return self._release()

    def _release(self) -> str:
        self.done = True
        whole = (at for at in self._starts if len(self._partial) - at <= len(self._held))
        repeated = next((len(self._partial) - at for at in whole if _counts(self._partial, at)), 0)
        return self._held[repeated:]


def _may_repeat(partial: str, at: int, held: str) -> bool:
    length = len(partial) - at
    return partial.startswith(held, at) if len(held) < length else held.startswith(partial[at:])


def _counts(partial: str, at: int) -> bool:
    length = len(partial) - at
    if length >= _SURE:
        return True
    begins_word = not partial[at].isspace() and (at == 0 or not partial[at - 1].isalnum())
    return begins_word and length >= _WORD
