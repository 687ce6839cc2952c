"""Tool calls in a transcript: which still need a result, and which repeat others. Pure. Whether a call with an unknown
outcome asks first, and what is done with a repeated one: `agents.chat.tool_runner`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.core.parts import Json, Part, ToolPart
from holdfast.core.steps import SETTLED, complete_args
from holdfast.ports.model import ToolCall

MAX_CALLS: Final = 128  # Calls of one answer that are run


@dataclass(frozen=True, slots=True)
class RequestedCall(ToolCall):
    """A call that the model requested and that has no result yet."""

    unknown: bool = False  # An earlier execution started it, and its outcome is unknown


def written_args(part: ToolPart) -> str | None:
    """The arguments as the model wrote them, if that is known."""
    return part.args if isinstance(part.args, str) else part.args_text


def unsettled(parts: Sequence[Part]) -> list[RequestedCall]:
    """Calls that an earlier execution left without a result, in order.

    Incompletely written calls are left out: the model writes them again if it still needs them."""
    return [
        RequestedCall(
            part.call_id,
            part.name,
            args,
            part.provider,
            text=written_args(part),
            unknown=part.state == "unknown" or part.may_have_run,
        )
        for part in parts
        if isinstance(part, ToolPart) and part.name and part.state not in SETTLED
        if (args := complete_args(part)) is not None
    ]


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
