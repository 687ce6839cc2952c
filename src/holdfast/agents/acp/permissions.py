"""A program's options for a question, as decisions of ours and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.events import Decision
from holdfast.core.parts import Json
from holdfast.ports.agent import ApprovalAnswer


def options_of(options: Sequence[Mapping[str, Any]]) -> list[dict[str, Json]]:
    """The options for `ApprovalRequested.options`. The protocol has no kind for a whole session, so an id with
    *session* in it decides."""
    found: list[dict[str, Json]] = []
    for option in options:
        option_id, name = option.get("optionId"), option.get("name")
        if isinstance(option_id, str) and option_id:
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
