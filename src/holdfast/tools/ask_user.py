"""The tool with which the model asks the user. Its calls are never run: the run waits like one that needs an approval,
and the answer is the result (`agents.chat.tool_runner`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from holdfast.core import user_questions
from holdfast.core.parts import Json
from holdfast.ports.tool import ToolContext, ToolError, ToolResult, ToolTraits
from holdfast.tools.schemas import object_spec


@dataclass(frozen=True, slots=True)
class AskUserTool:
    spec: ClassVar = object_spec(
        user_questions.ASK_USER,
        "Ask the user a question and wait for the answer. Use it when you cannot go on without a decision or a fact "
        "that only the user has; do not use it to confirm what you were already asked to do.",
        {
            "question": {"type": "string", "minLength": 1, "maxLength": user_questions.MAX_QUESTION},
            "options": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": user_questions.MAX_OPTION},
                "maxItems": user_questions.MAX_OPTIONS,
                "description": "Short answers to choose from.",
            },
            "allow_text": {
                "type": "boolean",
                "description": "Whether the user may write another answer than the options. Default: true.",
            },
        },
        "question",
    )
    traits: ClassVar = ToolTraits(repeatable=True, rule="allow", asks_user=True)

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        raise ToolError("The user cannot be asked here.")
