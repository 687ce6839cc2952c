"""Translates the options that a program offers with a question into decisions (once, session, always, deny). Which of
the options an answer stands for: `agents.permissions`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.core.events import Decision
from holdfast.core.parts import Json

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
