"""Removes the words of a partial answer that its continuation repeats. Text is held back only while it may still be a
repetition; if a word is really meant to end one piece and begin the next, one copy of it is lost."""

from typing import Final

_TAIL: Final = 2000  # A repetition begins within this many characters of the end, or at the very start
_SURE: Final = 8  # This many equal characters are not a coincidence
_WORD: Final = 3
"""Fewer suffice at the start of a word: nobody writes "brownbrown", while "yel" + "low" shares one letter."""


class OverlapTrimmer:
    def __init__(self, partial: str) -> None:
        self._partial = partial
        first = max(0, len(partial) - _TAIL)
        self._starts = [0, *range(max(1, first), len(partial))] if partial else []
        self._held = ""
        self.done = not partial  # Nothing is held back now or later

    def take(self, text: str) -> str:
        """The part of the new text that can be shown now."""
        if self.done:
            return text
        self._held += text
        held, partial = self._held, self._partial
        self._starts = [at for at in self._starts if _may_repeat(partial, at, held)]
        if any(len(partial) - at > len(held) for at in self._starts):
            return ""  # it may still become the whole tail
        return self._release()

    def end(self) -> str:
        """No more text follows; return what was held back and is not a repetition."""
        if self.done:
            return ""
        cut_off = [at for at in self._starts if len(self._partial) - at > len(self._held)]
        if cut_off and len(self._held) >= _SURE:
            self.done = True
            return ""  # it repeated a part and stopped
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
