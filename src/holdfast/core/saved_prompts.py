"""Saved prompts: texts with variables, which become messages. A variable is `{{name}}`, or `{{name=default}}`; anything
else in braces is text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.core.errors import InvalidInputError
from holdfast.core.ids import OwnerId, PromptId

MAX_PROMPTS: Final = 1000  # Of one owner
MAX_TEXT: Final = 20_000  # Characters
MAX_DESCRIPTION: Final = 200
MAX_VARIABLES: Final = 20
MAX_FILLED: Final = 100_000  # Characters of the message
NAME_PATTERN: Final = r"^[a-z][a-z0-9_-]{0,63}$"
_VARIABLE: Final = re.compile(r"\{\{[ \t]{0,8}([A-Za-z][A-Za-z0-9_-]{0,63})[ \t]{0,8}(?:=([^{}]{0,1000}))?\}\}")


@dataclass(frozen=True, slots=True)
class SavedPrompt:
    id: PromptId
    owner: OwnerId
    name: str  # What follows the slash; unique among the prompts of its owner
    description: str
    text: str
    created_at: float
    updated_at: float
    version: int = 1


@dataclass(frozen=True, slots=True)
class PromptVariable:
    name: str
    default: str | None = None  # None: a value is required


def find_variables(text: str) -> Sequence[PromptVariable]:
    """The variables in the order of their first use. A default counts wherever it stands."""
    found: dict[str, str | None] = {}
    for match in _VARIABLE.finditer(text):
        name, default = match.groups()
        if found.get(name) is None:
            found[name] = None if default is None else default.strip()
    return [PromptVariable(*each) for each in found.items()]


def check_text(text: str) -> None:
    if not text.strip():
        raise InvalidInputError("text", "must not be empty")
    if len(find_variables(text)) > MAX_VARIABLES:
        raise InvalidInputError("text", f"must have at most {MAX_VARIABLES} variables")


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with a value for each variable. What looks like a variable in a value stays as it is."""
    variables = find_variables(text)
    unknown = values.keys() - {each.name for each in variables}
    if unknown:
        raise InvalidInputError("values", f"has {sorted(unknown)[0]!r}, which is no variable of the prompt")
    known = {each.name: values.get(each.name) or each.default for each in variables}
    for name, value in known.items():
        if value is None:
            raise InvalidInputError("values", f"must have a value for {name!r}")
    pieces: list[str] = []
    size = end = 0
    for match in _VARIABLE.finditer(text):
        pieces += (text[end : match.start()], known[match.group(1)] or "")
        size += len(pieces[-2]) + len(pieces[-1])
        if size > MAX_FILLED:
            raise InvalidInputError("values", f"make the message longer than {MAX_FILLED} characters")
        end = match.end()
    return "".join([*pieces, text[end:]])
