"""The tools that a server lists, checked one by one: a malformed one is left out and hides no other. Names and approval
defaults: `tools.mcp.tool_mapping`."""

import json
import logging
from collections.abc import Sequence
from typing import Any, Final

from holdfast.core.finite_numbers import find_non_finite
from holdfast.core.json_limits import is_too_deep
from holdfast.core.parts import Json

log = logging.getLogger("holdfast.tools")

MAX_TOOLS: Final = 1_000  # Of one page; after so many, no further page is asked for
_MAX_SCHEMA: Final = 100_000  # Characters
_MAX_SCHEMAS: Final = 1_000_000  # Of one page; models are sent the schemas of all tools with every request


def keep_valid_tools(server: str, tools: Sequence[Json]) -> list[Json]:
    """The tools that can be used, without their output schemas: the SDK would apply the patterns in them to results."""
    kept: list[Json] = []
    room = _MAX_SCHEMAS
    for at, tool in enumerate(tools[:MAX_TOOLS]):
        size, problem = _check(tool)
        room -= size if problem is None else 0
        if room < 0:
            log.warning(
                "The last %d tools of the MCP server %s are left out: too many schemas", len(tools) - at, server
            )
            break
        if problem is None:
            kept.append({key: value for key, value in tool.items() if key != "outputSchema"})
        else:
            name = tool.get("name") if isinstance(tool, dict) else None
            log.warning("A tool of the MCP server %s is left out: %s: %s", server, str(name)[:100], problem)
    return kept


def _check(tool: Json) -> tuple[int, str | None]:
    """The size of the tool's schema, and why the tool cannot be used."""
    import mcp.types
    from pydantic import ValidationError

    if is_too_deep(tool):
        return 0, "it is nested too deeply"
    if find_non_finite(tool) is not None:  # a provider would refuse every request with the tool
        return 0, "it has a number that is too large"
    try:
        parsed: Any = mcp.types.Tool.model_validate(tool)
    except ValidationError as error:
        return 0, f"{error.errors()[0]['loc']}: {error.errors()[0]['msg']}"
    if parsed.input_schema.get("type", "object") != "object":
        return 0, "the schema of its arguments is not that of an object"
    size = len(json.dumps(parsed.input_schema))
    return size, "its schema is too large" if size > _MAX_SCHEMA else None
