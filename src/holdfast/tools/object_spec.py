"""The description of a built-in tool, whose arguments are an object without other properties."""

from collections.abc import Mapping

from holdfast.core.parts import Json
from holdfast.ports.model import ToolSpec


def object_spec(name: str, description: str, properties: Mapping[str, Json], *required: str) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolSpec(name, description, schema)
