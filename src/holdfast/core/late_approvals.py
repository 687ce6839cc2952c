"""Calls that were denied because nobody answered in time, and that a person allows later. How long a question waits:
`answer_within` in `engine.settings`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from holdfast.core.parts import Part, ToolPart

NO_ANSWER: Final = "Nobody answered in time, so it was denied."
"""The result of such a call. The web app offers to allow it as long as it is this text."""
NO_ANSWER_FINAL: Final = f"{NO_ANSWER} It is not shown in full, so it cannot be allowed later."
"""The same for a call of which only a part is known: a later one could not be recognized as the same."""
ALLOWED_LATER: Final = f"{NO_ANSWER} You allowed it later."


def is_unanswered(part: Part) -> bool:
    return isinstance(part, ToolPart) and part.state == "denied" and part.result == NO_ANSWER


def unanswered_calls(parts: Iterable[Part]) -> frozenset[str]:
    return frozenset(part.call_id for part in parts if isinstance(part, ToolPart) and is_unanswered(part))


def mark_allowed(parts: Iterable[Part], allowed: frozenset[str]) -> tuple[Part, ...]:
    """The parts of the message that goes on: these calls stay denied, and cannot be allowed once more."""
    return tuple(
        replace(part, result=ALLOWED_LATER)
        if isinstance(part, ToolPart) and part.call_id in allowed and is_unanswered(part)
        else part
        for part in parts
    )
