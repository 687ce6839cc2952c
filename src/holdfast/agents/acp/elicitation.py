"""Forms that a program asks the person to fill in while it works. They have the format of those of MCP, so the same
checks apply (`core.form_schema`). How the person is asked: `engine.transactions.approvals`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from holdfast.core.form_schema import answer_problem, form_problem
from holdfast.core.json_limits import is_too_large
from holdfast.ports.agent import InputAnswer

_MAX_MESSAGE: Final = 4_000  # Characters
_MAX_SCHEMA: Final = 100_000  # Characters at least; larger ones are not even measured exactly
_MAX_ID: Final = 200


@dataclass(slots=True, eq=False)
class FormRequest:
    """Answered with what the person entered, or with None: cancelled."""

    call_id: str  # Of the tool that needs it, empty if the program names none
    message: str
    schema: dict[str, Any]
    answered: anyio.Event = field(default_factory=anyio.Event)
    response: Mapping[str, Any] = field(default_factory=lambda: {"action": "cancel"})

    def answer(self, answer: InputAnswer | None) -> None:
        if self.answered.is_set():
            return
        if answer is not None and answer.action == "accept":
            content = {name: value for name, value in answer.content.items() if value is not None}
            if answer_problem(self.schema, content) is None:
                self.response = {"action": "accept", "content": content}
        elif answer is not None:
            self.response = {"action": answer.action}
        self.answered.set()


def read_form(params: Mapping[str, Any]) -> FormRequest:
    """Raises ValueError for a link to open, and for a form that is too large or nested to be shown."""
    if params.get("mode") != "form":
        raise ValueError("only the form mode is supported")
    message, call_id, requested = params.get("message"), params.get("toolCallId"), params.get("requestedSchema")
    if not isinstance(message, str) or not isinstance(requested, dict) or is_too_large(requested, _MAX_SCHEMA):
        raise ValueError("message must be a string, and requestedSchema an object")
    schema = {"type": "object", "properties": {}} | {k: v for k, v in requested.items() if v is not None}
    problem = form_problem(schema)
    if problem is not None:
        raise ValueError(f"the requested schema cannot be shown: {problem}")
    return FormRequest(call_id[:_MAX_ID] if isinstance(call_id, str) else "", message[:_MAX_MESSAGE], schema)
