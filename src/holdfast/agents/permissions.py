"""Answers the permission requests of agents that are other programs: which of the program's options a person's answer
stands for, and which calls a person allowed in advance. How a question is stored and answered:
`engine.transactions.approvals`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from holdfast.core.events import Decision
from holdfast.core.parts import Json, Part, ToolPart
from holdfast.ports.agent import ApprovalAnswer, Turn


def chosen_option(options: Sequence[Mapping[str, Json]], answer: ApprovalAnswer) -> str | None:
    """The id of the option that the answer names, or of one that means no more than the decision; None: cancelled."""
    alike = [option for option in options if option["decision"] == answer.decision]
    named = [option for option in alike if option["name"] == answer.note]
    if answer.decision != "deny" and not alike:
        alike = [option for option in options if option["decision"] == "once"]
    found = next(iter(named or alike), None)
    return None if found is None else str(found["id"])


@dataclass(slots=True)
class LateGrants:
    """Calls that a person allowed after nobody had answered in time. Each allows one call of the same name with the
    same arguments; everything else is asked about. A call whose arguments were shortened must not be compared, because
    a different one may look the same."""

    _calls: list[tuple[str, Json]] = field(default_factory=list)

    @classmethod
    def of_turn(cls, turn: Turn) -> Self:
        return cls([_call(part) for part in allowed_later(turn.transcript.parts, turn.decisions)])

    def take(self, name: str, args: Json) -> bool:
        call = _call(ToolPart("", name, args, "pending"))
        if call not in self._calls:
            return False
        self._calls.remove(call)
        return True


def allowed_later(parts: Sequence[Part], decisions: Mapping[str, Decision]) -> list[ToolPart]:
    """The denied calls that a person has allowed since, without those that an earlier execution of the run made."""
    tools = [part for part in parts if isinstance(part, ToolPart)]
    made = [_call(part) for part in tools if part.state in ("running", "done", "unknown")]
    allowed = [part for part in tools if part.state == "denied" and decisions.get(part.call_id, "deny") != "deny"]
    return [part for part in allowed if _call(part) not in made]


def _call(part: ToolPart) -> tuple[str, Json]:
    """The part of a call that is compared. It excludes the lines that a call will change, because a program may name
    them only once the call has begun."""
    if isinstance(part.args, dict):
        return part.name, {key: value for key, value in part.args.items() if key != "locations"}
    return part.name, part.args
