"""Answers that a person has edited: a sibling of the original with another text. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from holdfast.core.ids import MessageId
from holdfast.core.parts import Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.session import Message
from holdfast.core.steps import step_starts

EDITED: Final = "edited"
"""The `reason` of an answer that a person has edited."""


def with_text(parts: Sequence[Part], text: str) -> tuple[Part, ...]:
    """The parts with `text` in place of all their texts, behind everything else. Tool calls stay, in their steps:
    what follows may rest on them. Reasoning is left out, because it led to another text."""
    starts = step_starts(parts)
    kept: list[Part] = []
    last_step: int | None = None
    for at, part in enumerate(parts):
        if isinstance(part, TextPart | ReasoningPart):
            continue
        if not isinstance(part, ToolPart):
            kept.append(part)
            continue
        step = bisect_right(starts, at)
        kept.append(replace(part, begins_step=True if last_step not in (None, step) else None))
        last_step = step
    return (*kept, TextPart(text))


def edited_answer(original: Message, text: str, mid: MessageId, key: str | None, now: float) -> Message:
    """The edited version, which belongs to no run. It is complete, whatever became of the original."""
    return replace(
        original,
        id=mid,
        created_at=now,
        run_id=None,
        status="complete",
        parts=with_text(original.parts, text),
        reason=EDITED,
        error=None,
        recovery=None,
        usage=None,
        key=key,
        last_seq=0,
    )
