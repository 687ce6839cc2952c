"""What a case of the hostile table is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.models.request_policy import Timeouts
from tests.upstream import GUARD, End, Head, Script, Step, answers, delta, says, sse

SHORT = Timeouts(connect=GUARD, first_token=0.2, idle=GUARD, stalled=GUARD)
IMPATIENT = Timeouts(connect=GUARD, first_token=GUARD, idle=0.2, stalled=GUARD)
HASTY = Timeouts(GUARD, GUARD, GUARD, GUARD, tail=0.2)
BORED = Timeouts(connect=GUARD, first_token=GUARD, idle=GUARD, stalled=0.2)


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
    policy: Mapping[str, Any] = field(default_factory=dict)
    """Changes to `RequestPolicy`."""


def case(
    name: str, *scripts: Script, says: str | tuple[str, ...] = (), timeouts: Timeouts | None = None, **expected: Any
) -> Case:
    if timeouts is not None:
        expected["policy"] = {"timeouts": timeouts}
    return Case(name, scripts, says=(says,) if isinstance(says, str) else says, **expected)


def recovers(name: str, failure: Script, **expected: Any) -> Case:
    """A failure that is asked again, and then well."""
    return case(name, failure, OK, text="All good", requests=2, **expected)


def broken(name: str, *steps: Step, **expected: Any) -> Case:
    """An answer that begins well and goes on with these steps."""
    return case(name, [*BEGUN, *steps], text="Half an ", **expected)


def stream(*events: Any, done: bool = True) -> Script:
    """A stream that ends in order."""
    return [Head(), *sse(*events, *(["[DONE]"] if done else [])), End()]


def error(status: int, message: str, **fields: Any) -> Script:
    return answers(status, {"error": {"message": message, **fields}})


BEGUN = [Head(), *sse(delta(content="Half an "))]
FINISHED = delta(finish="stop")
OK = says("All good")
