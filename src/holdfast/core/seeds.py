"""How a continuing run begins: with what the run before it left, in events that every journal takes.

One event would do but for its size: a turn of many tools leaves more than a journal takes at once. Folded, they are the
parts that they were made of.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.core.events import Event, MessageSeeded, ReasoningDelta, TextDelta
from holdfast.core.ids import RunId
from holdfast.core.parts import Part, Reasoning, Text, to_json

_MOST: Final = 128 * 1024
"""Characters: of the parts of one event, as JSON, and of a text. A tool's part may be longer by itself; its arguments
and its result were events, so that only all of it together can be too long."""


def seeds(from_run: RunId, parts: Sequence[Part], most: int = _MOST) -> list[Event]:
    """The first is `message.seeded`, and so is the last, which ends a thought that had to be cut."""
    found: list[Event] = []
    some: list[Part] = []
    size = 0
    for part in parts:
        first, rest = _cut(part, most)
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


def said(events: Iterable[Event]) -> int:
    """Characters that come as deltas. The run that said them first has counted them against its limit."""
    return sum(len(event.text) for event in events if isinstance(event, TextDelta | ReasoningDelta))


def _cut(part: Part, most: int) -> tuple[Part, list[Event]]:
    """A long text is seeded with its beginning and grows by the rest, as it did when it was first written."""
    match part:
        case Text(text) if len(text) > most:
            return Text(text[:most]), [TextDelta(piece) for piece in _pieces(text, most)]
        case Reasoning(text, provider, duration) if len(text) > most:
            *more, last = _pieces(text, most)
            return Reasoning(text[:most], None, duration), [
                *(ReasoningDelta(piece) for piece in more),
                ReasoningDelta(last, provider),
            ]
        case _:
            return part, []


def _pieces(text: str, most: int) -> list[str]:
    return [text[at : at + most] for at in range(most, len(text), most)]
