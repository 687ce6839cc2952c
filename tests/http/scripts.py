"""What the agent does, written in the message itself: a JSON list of actions. Any other text is said back.

[{"say": "a", "times": 3}, {"think": "b"}, {"tokens": 5, "rate": 20}, {"step": 0},
 {"retrying": [2, 4, "why"]}, {"call": "c1", "asks": true}, {"usage": [3, 4]}, {"meet": "gate"}, {"hang": true},
 {"fail": ["code", "words"]}, {"finish": "length"}, {"crash": true}, {"steering": true}]
"""

import json
from collections.abc import Sequence
from typing import Any

from holdfast.agents.scripted_agent import (
    Action,
    CallTool,
    Crash,
    Fail,
    Finish,
    Hang,
    Meet,
    Say,
    SayTokens,
    TakeSteering,
    Think,
)
from holdfast.core.events import StepRetrying, StepStarted, Usage
from holdfast.core.parts import plain_text
from holdfast.ports.agent import Turn


def of_turn(turn: Turn) -> Sequence[Action]:
    return of_text(plain_text(turn.input.messages[-1].parts) if turn.input.messages else "")


def of_text(text: str) -> Sequence[Action]:
    try:
        items = json.loads(text)
    except ValueError:
        items = None
    if not isinstance(items, list):
        return [Say(text)] if text else []
    return [_action(item) for item in items for _ in range(item.pop("times", 1))]


def _action(item: dict[str, Any]) -> Action:
    match item:
        case {"say": text, **rest}:
            return Say(text, rest.get("after", 0.0))
        case {"think": text, **rest}:
            return Think(text, rest.get("after", 0.0))
        case {"tokens": count, **rest}:
            return SayTokens(count, rest.get("rate"))
        case {"step": index}:
            return StepStarted(index)
        case {"retrying": [attempt, attempts, message]}:
            return StepRetrying(attempt, attempts, 1000, message)
        case {"call": call_id, **rest}:
            tuples: dict[str, Any] = {name: tuple(rest.pop(name)) for name in ("output", "writes_args") if name in rest}
            return CallTool(call_id, **rest, **tuples)
        case {"usage": [given, said]}:
            return Usage(given, said)
        case {"meet": name}:
            return Meet(name)
        case {"hang": _}:
            return Hang()
        case {"fail": [code, words]}:
            return Fail(code, words)
        case {"finish": reason}:
            return Finish(reason)
        case {"steering": _}:
            return TakeSteering()
        case {"crash": _}:
            return Crash()
        case _:
            raise ValueError(f"no such action: {item}")
