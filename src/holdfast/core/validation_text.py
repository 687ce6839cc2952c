"""What a value that pydantic refuses must be, in plain words and without pydantic's names of types. Pure. Which field
it is about: `config`, `engine.export_lines`, `server.validation_errors`."""

import re
from collections.abc import Mapping
from typing import Any, Final

_EXPECTED: Final = {
    "missing": "is required",
    "extra_forbidden": "is unknown; check its name",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_attributes_type": "must be an object",
    "model_type": "must be an object",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is too large",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "path_type": "must be a path",
    "string_pattern_mismatch": "has characters that are not allowed here",
    "string_type": "must be a string",
    "string_unicode": "must be valid text",
}
_TOO_SHORT_OR_LONG: Final = {
    "string_too_short": ("least", "min_length", "character"),
    "string_too_long": ("most", "max_length", "character"),
    "too_short": ("least", "min_length", "item"),
    "too_long": ("most", "max_length", "item"),
}


def validation_text(error: Mapping[str, Any]) -> str:
    """Follows the name of a field, such as `must be a string`. `error` is an item of `ValidationError.errors()`."""
    kind = error["type"]
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    if kind in _TOO_SHORT_OR_LONG:
        bound, name, noun = _TOO_SHORT_OR_LONG[kind]
        limit = error["ctx"][name]
        return f"must have at {bound} {limit} {noun}{'' if limit == 1 else 's'}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        context = error["ctx"]
        expected = f": one of {context['expected_tags']}" if "expected_tags" in context else ""
        return f"needs a known {context['discriminator']}{expected}"
    return re.sub(r"^(Input|String|Value) should ", "must ", str(error["msg"]).removeprefix("Value error, "))
