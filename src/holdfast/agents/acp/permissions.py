"""A program's options for a question, as decisions of ours and back, and the calls that a person allowed in advance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from holdfast.core.events import Decision
from holdfast.core.parts import Json, Part, ToolPart
from holdfast.ports.agent import ApprovalAnswer, Turn

_MAX_ID: Final = 1000


def options_of(options: Sequence[Mapping[str, Any]]) -> list[dict[str, Json]]:
    """The options for `ApprovalRequested.options`. The protocol has no kind for a whole session, so an id with
    *session* in it decides."""
    found: list[dict[str, Json]] = []
    for option in options:
        option_id, name = option.get("optionId"), option.get("name")
        if isinstance(option_id, str) and 0 < len(option_id) <= _MAX_ID:  # it is answered as it is, so never shortened
            shown = name[:200] if isinstance(name, str) and name else option_id[:200]
            found.append({"id": option_id, "name": shown, "decision": _decision(option_id, option.get("kind"))})
    return found


def _decision(option_id: str, kind: Any) -> Decision:
    if kind == "allow_once":
        return "once"
    if kind == "allow_always":
        return "session" if "session" in option_id.lower() else "always"
    return "deny"


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
    same arguments; whatever else the program asks for is a question. A call whose arguments were left out must not be
    compared: another one looks the same."""

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
    """What is compared. A program may name the lines that it will change only once it has begun."""
    if isinstance(part.args, dict):
        return part.name, {key: value for key, value in part.args.items() if key != "locations"}
    return part.name, part.args
