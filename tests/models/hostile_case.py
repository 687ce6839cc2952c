"""What a case of the hostile table is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.agents.models.endpoint import Patience
from tests.upstream import (
    GUARD,
    End,
    Head,
    Script,
    answers,
    delta,
    says,
    sse,
)

SHORT = Patience(connect=GUARD, first_token=0.2, idle=GUARD, stalled=GUARD)
IMPATIENT = Patience(connect=GUARD, first_token=GUARD, idle=0.2, stalled=GUARD)
HASTY = Patience(GUARD, GUARD, GUARD, GUARD, tail=0.2)
BORED = Patience(connect=GUARD, first_token=GUARD, idle=GUARD, stalled=0.2)


@dataclass(frozen=True)
class Call:
    """An expected tool call."""

    call_id: str
    name: str
    args: Any
    valid: bool = True


@dataclass(frozen=True)
class Case:
    name: str
    scripts: tuple[Script, ...]
    """One per request; the last one answers all that follow."""
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    code: str | None = None
    """Of the failure; None where the answer is complete."""
    says: tuple[str, ...] = ()
    """Words of the sentence that a person reads."""
    finish: str | None = "stop"
    usage: tuple[int, int] | None = None
    requests: int = 1
    slept: tuple[float, ...] | None = None
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    """Changes to `Endpoint`."""


def stream(*events: Any, done: bool = True) -> Script:
    """A stream that ends in order."""
    return [Head(), *sse(*events, *(["[DONE]"] if done else [])), End()]


def call(index: int | None, call_id: str | None = None, name: str | None = None, args: Any = None) -> dict[str, Any]:
    piece: dict[str, Any] = {"function": {"name": name, "arguments": args}}
    if index is not None:
        piece["index"] = index
    if call_id is not None:
        piece["id"] = call_id
    return piece


def error(status: int, message: str, **fields: Any) -> Script:
    return answers(status, {"error": {"message": message, **fields}})


BEGUN = [Head(), *sse(delta(content="Half an "))]
FINISHED = delta(finish="stop")
OK = says("All good")
TOOLS = delta(finish="tool_calls")
WEATHER = {"city": "Łódź"}
