"""The tool port. A tool says what it is; the loop decides whether it runs, journals that, and runs it.

A tool catches nothing but its own failures: cancellation ends it at once, and it leaves nothing running behind.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from holdfast.agents.models.port import ToolSpec
from holdfast.core.parts import Json
from holdfast.core.values import dataclass

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Rule = Literal["allow", "ask", "deny"]

MAX_RESULT = 100_000
"""Characters of one result: several of them fit into a model's context, and one into a journal event."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    workspace: Path
    """The session's directory. It may not exist yet: a tool that needs it makes it."""
    output: Callable[[str], Awaitable[None]]
    """Show what the tool prints while it runs. Waits while the journal is behind: that is the back-pressure."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model is told: text, or a JSON value."""

    content: Json
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a tool before it runs."""

    repeatable: bool = False
    """Safe to run again when it is not known how it ended."""
    read_only: bool = False
    """Changes nothing: several may run side by side."""
    rule: Rule = "ask"
    """Whether a person is asked, where nothing else is set."""


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    @property
    def traits(self) -> Traits: ...

    def scope(self, args: Mapping[str, Json]) -> str:
        """What an allowance for this call would cover (a host, say), or nothing for the tool as a whole."""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        """Do it. `args` fits the schema. An exception becomes an error result: the model is told, the run goes on."""


class ToolFailed(Exception):
    """The tool could not do it; the message tells the model what was wrong and what to try."""


class Validator:
    """Checks arguments against a tool's schema. References to other documents are not followed. jsonschema is imported
    here, and in `wiring/warming.py` before that: no start waits for it."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        from jsonschema import Draft202012Validator
        from referencing import Registry

        registry: Registry[Any] = Registry()
        self._validator = Draft202012Validator(schema, registry=registry)

    def problem(self, args: Json) -> str | None:
        """What is wrong with the arguments, in words that a model can act on."""
        from jsonschema.exceptions import SchemaError, best_match
        from referencing.exceptions import Unresolvable

        if not isinstance(args, dict):
            return f"The arguments must be a JSON object; they were {_kind(args)}."
        try:
            found = best_match(self._validator.iter_errors(args))
        except (SchemaError, Unresolvable, re.error) as error:
            return f"The tool's own schema cannot be used ({type(error).__name__}). Use another tool."
        return None if found is None else _explain(found)


def _explain(error: "ValidationError") -> str:
    where = ".".join(str(step) for step in error.absolute_path)
    at = f"{where}: " if where else ""
    return f"The arguments do not fit the tool's schema. {at}{error.message[:500]}"


def _kind(value: Json) -> str:
    names = {str: "a string", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def as_text(content: Json) -> str:
    """A result as the model reads it."""
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, default=str)


def capped(result: ToolResult, limit: int = MAX_RESULT) -> ToolResult:
    """The result, or as much of it as one event and one context can take: its head and its tail. What JSON or UTF-8
    cannot carry is told in other words."""
    text = as_text(result.content)
    if len(text) <= limit:
        return result if _is_json(result.content) else ToolResult(_clean(text), result.is_error)
    text = _clean(text)
    return ToolResult(shorten(text, limit), result.is_error)


def _is_json(content: Json) -> bool:
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    left_out = len(text) - limit
    return f"{text[:head]}\n[… {left_out} characters left out …]\n{text[len(text) - tail :]}"


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """A table of tools. Two of one name are a mistake of whoever put them together."""
    table: dict[str, Tool] = {}
    for tool in tools:
        if tool.spec.name in table:
            raise ValueError(f"Two tools are named {tool.spec.name!r}; tool names must differ.")
        table[tool.spec.name] = tool
    return table
