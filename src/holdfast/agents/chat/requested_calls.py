"""Tool calls in a transcript: which are complete, which are settled, and where steps begin. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.core.parts import Json, Part, TextPart, ToolPart, ToolState
from holdfast.ports.model import ToolCall
from holdfast.tools.schemas import is_too_deep

MAX_CALLS: Final = 128  # Calls of one answer that are run
SETTLED: Final[frozenset[ToolState]] = frozenset({"done", "denied"})


@dataclass(frozen=True, slots=True)
class RequestedCall(ToolCall):
    """A call that the model requested and that has no result yet."""

    unknown: bool = False  # An earlier execution started it, and its outcome is unknown


def complete_args(part: ToolPart) -> Mapping[str, Json] | None:
    """The arguments, or None while the model is still writing them, or if they are nested too deeply to be used.

    A proper prefix of a JSON object is never itself an object, so text that parses as one is complete."""
    if isinstance(part.args, str):
        try:
            args = json.loads(part.args)
        except (ValueError, RecursionError):
            return None
        return args if isinstance(args, dict) and not is_too_deep(args) else None
    return part.args if isinstance(part.args, dict) else None


def unsettled(parts: Sequence[Part]) -> list[RequestedCall]:
    """Calls that an earlier execution left without a result, in order.

    Incompletely written calls are left out: the model writes them again if it still wants them."""
    return [
        RequestedCall(
            part.call_id, part.name, args, part.provider, unknown=part.state == "unknown" or part.may_have_run
        )
        for part in parts
        if isinstance(part, ToolPart) and part.name and part.state not in SETTLED
        if (args := complete_args(part)) is not None
    ]


def step_marks(parts: Sequence[Part]) -> list[int]:
    """Indexes at which steps begin, as far as the parts tell.

    A step ends with its tools, so text after settled tools begins the next step. Text after an unsettled tool belongs
    to the tool's step."""
    marks = [0] if parts else []
    open_before = False
    for at, part in enumerate(parts):
        if isinstance(part, ToolPart):
            unsettled_call = part.state not in SETTLED and complete_args(part) is not None
            open_before = open_before or unsettled_call
        elif at and isinstance(parts[at - 1], ToolPart) and not open_before:
            marks.append(at)
    return marks


def repeats(parts: Sequence[Part], call_id: str, name: str, args: Json) -> int:
    """How many identical calls directly precede this one."""
    tools = [part for part in parts if isinstance(part, ToolPart)]
    where = next((n for n in range(len(tools) - 1, -1, -1) if tools[n].call_id == call_id), len(tools))
    count = 0
    while count < where:
        before = tools[where - 1 - count]
        if before.name != name or complete_args(before) != args:
            break
        count += 1
    return count


def unfinished_text(parts: Sequence[Part]) -> str | None:
    """The text that an earlier execution was cut off in; an incompletely written call after it does not count."""
    for part in reversed(parts):
        if isinstance(part, ToolPart) and part.state not in SETTLED and complete_args(part) is None:
            continue
        return part.text if isinstance(part, TextPart) and part.text else None
    return None
