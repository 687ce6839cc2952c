"""Tool calls as the transcript shows them: which are complete, which are settled, and where a step began. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.core.parts import Json, Part, Text, Tool, ToolState
from holdfast.core.values import dataclass

SETTLED: Final[frozenset[ToolState]] = frozenset({"done", "denied"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that the model asked for and that has no answer yet."""

    call_id: str
    name: str
    args: Json
    provider: Json = None
    invalid: str | None = None
    """Why the arguments are none."""
    unknown: bool = False
    """It was started before, and nobody knows how that ended."""


def complete_args(part: Tool) -> Mapping[str, Json] | None:
    """The arguments, or None while the model is still writing them. What is only the beginning of a JSON object is
    never one itself, so text that can be read as an object is all of it."""
    if isinstance(part.args, str):
        try:
            read = json.loads(part.args)
        except ValueError:
            return None
        return read if isinstance(read, dict) else None
    return part.args if isinstance(part.args, dict) else None


def unsettled(parts: Sequence[Part]) -> list[Wanted]:
    """What an earlier life left to do, in order. A call that was not completely written is not among it: the model
    will write it again if it still wants it."""
    return [
        Wanted(part.call_id, part.name, args, part.provider, unknown=part.state == "unknown" or part.may_have_run)
        for part in parts
        if isinstance(part, Tool) and part.name and part.state not in SETTLED
        if (args := complete_args(part)) is not None
    ]


def step_marks(parts: Sequence[Part]) -> list[int]:
    """Where steps began, as well as parts can tell: a step ends with its tools, so words after settled tools begin the
    next one. Words after a tool that is not settled belong to the same step as the tool."""
    marks = [0] if parts else []
    open_before = False
    for at, part in enumerate(parts):
        if isinstance(part, Tool):
            left = part.state not in SETTLED and complete_args(part) is not None
            open_before = open_before or left
        elif at and isinstance(parts[at - 1], Tool) and not open_before:
            marks.append(at)
    return marks


def repeats(parts: Sequence[Part], call_id: str, name: str, args: Json) -> int:
    """How often the same call was made, in a row, just before this one."""
    tools = [part for part in parts if isinstance(part, Tool)]
    where = next((n for n in range(len(tools) - 1, -1, -1) if tools[n].call_id == call_id), len(tools))
    count = 0
    while count < where:
        before = tools[where - 1 - count]
        if before.name != name or complete_args(before) != args:
            break
        count += 1
    return count


def unfinished_text(parts: Sequence[Part]) -> str | None:
    """The words in mid-answer that an earlier life ended with; a call that was only begun does not count."""
    for part in reversed(parts):
        if isinstance(part, Tool) and part.state not in SETTLED and complete_args(part) is None:
            continue
        return part.text if isinstance(part, Text) and part.text else None
    return None
