"""Facts as an extractor finds them: a sentence, its topic, and the turn it comes from."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.memory import holographic_vectors
from holdfast.memory.keywords import topic_key, words
from holdfast.ports.memory import NewFact, RememberedTurn

MAX_TEXT = 500
TEXT_KEY_PREFIX = "="
"""Marks the key of a fact without a topic, which is a hash of its text: the same words are the same fact."""


@dataclass(frozen=True, slots=True)
class FactDraft:
    text: str
    about: str
    """The topic. A newer fact replaces an older one with the same topic; an empty topic is replaced by nothing else."""
    turn: RememberedTurn

    @property
    def key(self) -> str:
        key = topic_key(self.about)
        if key:
            return key[:200]
        text = " ".join(words(self.text))
        return TEXT_KEY_PREFIX + hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def to_facts(drafts: Iterable[FactDraft]) -> list[NewFact]:
    """The last draft of each key."""
    facts: dict[str, NewFact] = {}
    for draft in drafts:
        if text := " ".join(draft.text.split())[:MAX_TEXT]:
            vector = holographic_vectors.encode(text, draft.about)
            facts[draft.key] = NewFact(draft.key, text, draft.turn.message_id, draft.turn.said_at, vector)
    return list(facts.values())
