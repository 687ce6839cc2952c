"""The steps of an assistant message: which parts the model wrote in one answer. Pure.

The position of a part usually tells: text or reasoning after tools begins a step, as does anything after what the user
added; anything else continues one. A part whose position would mislead says so itself in `begins_step`, so messages of
earlier versions are read by position.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.core.json_limits import is_too_deep
from holdfast.core.parts import Json, Part, ReasoningPart, SteeredPart, TextPart, ToolPart, ToolState

SETTLED: Final[frozenset[ToolState]] = frozenset({"done", "denied"})


ModelPart = TextPart | ReasoningPart | ToolPart  # What a model writes


def begins_by_position(before: Sequence[Part], part: ModelPart) -> bool:
    """Whether `part` begins a step after the parts `before`, as far as positions tell."""
    previous = next((each for each in reversed(before) if isinstance(each, ModelPart | SteeredPart)), None)
    if previous is None or isinstance(previous, SteeredPart):
        return True
    return isinstance(previous, ToolPart) and not isinstance(part, ToolPart)


def step_starts(parts: Sequence[Part]) -> list[int]:
    """The indexes at which steps begin."""
    starts: list[int] = []
    before: tuple[Part, ...] = ()
    for at, part in enumerate(parts):
        if isinstance(part, SteeredPart):
            before = (part,)
        elif isinstance(part, ModelPart):
            begins = begins_by_position(before, part) if part.begins_step is None else part.begins_step
            if begins or not before:
                starts.append(at)
            before = (part,)
    return starts


def open_step(parts: Sequence[Part]) -> Sequence[Part]:
    """The parts of the last step if the model was cut off in it, so that its next answer continues the step; empty if
    the step has a complete call: an answer after that is another step."""
    step = parts[_last_start(parts) :]
    asked = any(isinstance(p, ToolPart) and (p.state in SETTLED or complete_args(p) is not None) for p in step)
    return () if asked else step


def _last_start(parts: Sequence[Part]) -> int:
    """Where the last step begins. Looks at no more parts than the step has, because it is asked at each step."""
    start = len(parts)
    later: ModelPart | None = None
    for at in range(len(parts) - 1, -1, -1):
        part = parts[at]
        if isinstance(part, SteeredPart):
            return start
        if not isinstance(part, ModelPart):
            continue
        if later is not None:
            begins = begins_by_position((part,), later) if later.begins_step is None else later.begins_step
            if begins:
                return start
        start, later = at, part
    return start


def unfinished_text(parts: Sequence[Part]) -> str | None:
    """The text that the model was cut off in. An incompletely written call after it does not count."""
    written = [part for part in open_step(parts) if isinstance(part, TextPart | ReasoningPart)]
    last = written[-1] if written else None
    return last.text if isinstance(last, TextPart) and last.text else None


def complete_args(part: ToolPart) -> Mapping[str, Json] | None:
    """The arguments, or None while the model is still writing them, or if they are nested too deeply to be used.

    A proper prefix of a JSON object is never itself an object, so text that parses as one is complete."""
    args = part.args
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            return None
    return args if isinstance(args, dict) and not is_too_deep(args) else None
