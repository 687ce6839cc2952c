"""What an extractor finds: a sentence worth keeping, what it is about, and the turn that it came from."""

import hashlib
from collections.abc import Iterable

from holdfast.core.values import dataclass
from holdfast.memory import holograms
from holdfast.memory.words import key, words
from holdfast.ports import NewFact, RememberedTurn

MAX_TEXT = 500
OWN_WORDS = "="
"""Begins the key of a fact that is about nothing but itself: the same words are the same fact."""


@dataclass(frozen=True, slots=True)
class Draft:
    text: str
    about: str
    """Facts about the same thing take each other's place. Empty: this one stands for itself."""
    turn: RememberedTurn

    @property
    def key(self) -> str:
        named = key(self.about)
        if named:
            return named[:200]
        said = " ".join(words(self.text))
        return OWN_WORDS + hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=16).hexdigest()


def finished(drafts: Iterable[Draft]) -> list[NewFact]:
    """One per key, the last word about it."""
    last = {draft.key: draft for draft in drafts if draft.text.strip()}
    return [_finished(draft, name) for name, draft in last.items()]


def _finished(draft: Draft, name: str) -> NewFact:
    text = " ".join(draft.text.split())[:MAX_TEXT]
    return NewFact(name, text, draft.turn.message_id, draft.turn.said_at, holograms.encode(text, draft.about))
