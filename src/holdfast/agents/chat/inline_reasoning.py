"""Separates the reasoning that some models write into their text, as `<think>…</think>` at its beginning, from the
answer. Text is held back only while it may still be part of a tag, so it does not matter how it is cut into pieces."""

from collections.abc import Sequence
from typing import Final

from holdfast.core.events import ReasoningDelta, TextDelta
from holdfast.models.openai_request import INLINE

TAGS: Final = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
)
_MAX_BLANK: Final = 100  # Blank characters before a tag or after it


class InlineReasoning:
    """`done`: everything that follows is text. The tags are kept as provider data, because until the turn ends the
    model is shown its own output unchanged."""

    def __init__(self) -> None:
        self.done = False
        self._held = ""
        self._open = ""  # What opened the reasoning, and the tag that closes it
        self._close = ""
        self._closed = False

    def take(self, text: str) -> Sequence[TextDelta | ReasoningDelta]:
        """The deltas that are certain so far; the rest of the text is held back."""
        if self.done:
            return [TextDelta(text)]
        self._held += text
        if not self._open:
            self._find_tag()
        if not self._open:
            return self._release() if self._is_text() else ()
        found: list[TextDelta | ReasoningDelta] = []
        if not self._closed:
            reasoning, tag, rest = self._held.partition(self._close)
            if not tag:
                kept = _prefix_at_end(reasoning, self._close)
                reasoning, rest = reasoning[: len(reasoning) - kept], reasoning[len(reasoning) - kept :]
            self._held, self._closed = rest, bool(tag)
            found += [ReasoningDelta(reasoning)] if reasoning else []
        if self._closed and (self._held.strip() or len(self._held) > _MAX_BLANK):
            found += self._release()
        return found

    def end(self) -> Sequence[TextDelta | ReasoningDelta]:
        """Call when no more text follows; returns what was held back."""
        return () if self.done else self._release()

    def _find_tag(self) -> None:
        start = self._held.lstrip()
        for opening, closing in TAGS:
            if start.startswith(opening):
                end = len(self._held) - len(start) + len(opening)
                self._open, self._close, self._held = self._held[:end], closing, self._held[end:]

    def _is_text(self) -> bool:
        """Whether no tag can come any more."""
        start = self._held.lstrip()
        return len(self._held) > _MAX_BLANK or not any(opening.startswith(start) for opening, _ in TAGS)

    def _release(self) -> list[TextDelta | ReasoningDelta]:
        """The text that was held back, as text or as reasoning."""
        self.done = True
        held, self._held = self._held, ""
        if not self._open:
            return [TextDelta(held)] if held else []
        if not self._closed:
            return [ReasoningDelta(held)] if held else []
        text = held.lstrip()
        tags = [self._open, self._close + held[: len(held) - len(text)]]
        return [ReasoningDelta("", {INLINE: tags}), *([TextDelta(text)] if text else [])]


def _prefix_at_end(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    return next((n for n in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:n])), 0)
