"""JSON schemas of tools: the description of a built-in tool, and the validation of a call's arguments."""

from collections.abc import Mapping

from holdfast.core.json_limits import MAX_DEPTH, is_too_deep
from holdfast.core.parts import Json
from holdfast.ports.model import ToolSpec
from holdfast.tools.schema_validator import InvalidSchemaError, SchemaTooComplexError, SchemaValidator


def object_spec(name: str, description: str, properties: Mapping[str, Json], *required: str) -> ToolSpec:
    """The arguments are an object without other properties."""
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolSpec(name, description, schema)


def argument_problem(schema: Mapping[str, Json], args: Json) -> str | None:
    """What is wrong with the arguments, in words that a model can act on; None if they are valid."""
    if not isinstance(args, dict):
        names = {str: "a string", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
        return f"The arguments must be a JSON object, but were {names.get(type(args), 'null')}."
    if is_too_deep(args):
        return f"The arguments are nested more than {MAX_DEPTH} levels deep. Send them in a flatter form."
    try:
        violation = SchemaValidator(schema).find_violation(args)
    except SchemaTooComplexError:
        return "The tool's own schema is too complex to check these arguments. Send less at once, or use another tool."
    except InvalidSchemaError as error:
        return f"The tool's own schema is invalid ({str(error)[:200]}). Use another tool."
    if violation is None:
        return None
    path = ".".join(str(step)[:100] for step in violation.path[:20])
    return f"Invalid arguments. {f'{path}: ' if path else ''}{violation.message[:500]}"
