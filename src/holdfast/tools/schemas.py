"""JSON schemas of tools: the description of a built-in tool, and the validation of a call's arguments."""

import re
from collections.abc import Mapping
from typing import Any

from holdfast.core.parts import Json
from holdfast.ports.model import ToolSpec


def object_spec(name: str, description: str, properties: Mapping[str, Json], *required: str) -> ToolSpec:
    """The arguments are an object without other properties."""
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolSpec(name, description, schema)


def argument_problem(schema: Mapping[str, Json], args: Json) -> str | None:
    """What is wrong with the arguments, in words that a model can act on; None if they are valid. References to other
    documents are not followed. jsonschema is imported here, and by `app/deferred_imports.py` in the background, so that
    start-up does not wait for it."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError, best_match
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    if not isinstance(args, dict):
        names = {str: "a string", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
        return f"The arguments must be a JSON object, but were {names.get(type(args), 'null')}."
    registry: Registry[Any] = Registry()
    try:
        error = best_match(Draft202012Validator(schema, registry=registry).iter_errors(args))
    except (SchemaError, Unresolvable, re.error) as invalid:
        return f"The tool's own schema is invalid ({type(invalid).__name__}). Use another tool."
    if error is None:
        return None
    path = ".".join(str(step) for step in error.absolute_path)
    return f"The arguments do not match the tool's schema. {f'{path}: ' if path else ''}{error.message[:500]}"
