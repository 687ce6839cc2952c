"""The first events of a continuing run, which carry over the earlier run's parts. There are several because a journal
limits the size of one event. Their fold is exactly the earlier parts."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from holdfast.core.events import Event, MessageSeeded, ReasoningDelta, TextDelta
from holdfast.core.ids import RunId
from holdfast.core.parts import Part, ReasoningPart, TextPart, to_json

_MAX_SIZE: Final = 128 * 1024  # Most characters of one event's parts as JSON; a single tool part may exceed it


def seed_events(from_run: RunId, parts: Sequence[Part], most: int = _MAX_SIZE) -> list[Event]:
    """The first and the last are `message.seeded`; the last ends reasoning that had to be split."""
    found: list[Event] = []
    some: list[Part] = []
    size = 0
    for part in parts:
        first, rest = _split(part, most)
        length = len(json.dumps(to_json(first)))
        if some and size + length > most:
            found.append(MessageSeeded(from_run, tuple(some)))
            some, size = [], 0
        some.append(first)
        size += length
        if rest:
            found += [MessageSeeded(from_run, tuple(some)), *rest]
            some, size = [], 0
    if some or not found or not isinstance(found[-1], MessageSeeded):
        found.append(MessageSeeded(from_run, tuple(some)))
    return found


def delta_size(events: Iterable[Event]) -> int:
    """Characters that are carried over as deltas, which the earlier run has counted against its limit."""
    return sum(len(event.text) for event in events if isinstance(event, TextDelta | ReasoningDelta))


def _split(part: Part, most: int) -> tuple[Part, list[Event]]:
    """The start of a long text as a part, and the rest as deltas."""
    match part:
        case TextPart(text) if len(text) > most:
            return replace(part, text=text[:most]), [TextDelta(piece) for piece in _pieces(text, most)]
        case ReasoningPart(text, provider) if len(text) > most:
            *more, last = _pieces(text, most)
            return replace(part, text=text[:most], provider=None), [
                *(ReasoningDelta(piece) for piece in more),
                ReasoningDelta(last, provider),
            ]
        case _:
            return part, []


def _pieces(text: str, most: int) -> list[str]:
    return [text[at : at + most] for at in range(most, len(text), most)]
