"""Writes the TypeScript types of the API: `python web/generate_types.py [--check]`.

They come from the server's pydantic models, by way of OpenAPI. `--check` writes nothing and fails if the file is not
current.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from holdfast.server import openapi
from holdfast.server.app import native_endpoints

TARGET: Final = Path(__file__).resolve().parent / "src" / "core" / "api-types.ts"
_HEADER: Final = """// Generated from the server's schemas by web/generate_types.py; do not edit.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
"""
_JSON: Final = "JsonValue"
"""Pydantic's name for any JSON value."""
_MAX_LINE: Final = 120
_PRIMITIVES: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def generate() -> str:
    schemas = openapi.build_document(native_endpoints())["components"]["schemas"]
    names = sorted(name for name in schemas if name != _JSON)
    return _HEADER + "".join(f"\n{_declaration(name, schemas[name])}" for name in names)


def _declaration(name: str, schema: Mapping[str, Any]) -> str:
    comment = _comment(schema, "")
    if schema.get("type") != "object":
        return comment + _assigned(f"export type {name} =", _type(schema), "  ")
    required = schema.get("required", ())
    fields = []
    for field, value in schema.get("properties", {}).items():
        optional = "" if field in required else "?"
        fields.append(_comment(value, "  ") + _assigned(f"  readonly {field}{optional}:", _type(value), "    "))
    # A type, not an interface: only types are assignable to `Json`.
    return f"{comment}export type {name} = {{\n{''.join(fields)}}};\n"


def _assigned(start: str, value: str, indent: str) -> str:
    """`start` and the type in one line, or with each option of a long union in its own, as the formatter has it."""
    line = f"{start} {value};\n"
    if len(line) <= _MAX_LINE + 1:
        return line
    options = "".join(f"\n{indent}| {option}" for option in value.split(" | "))
    return f"{start}{options};\n"


def _comment(schema: Mapping[str, Any], indent: str) -> str:
    text = " ".join(str(schema.get("description", "")).split())
    return f"{indent}/** {text} */\n" if text else ""


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": ref}:
            name = str(ref).rpartition("/")[2]
            return "Json" if name == _JSON else name
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": options} | {"oneOf": options}:
            return " | ".join(dict.fromkeys(_type(option) for option in options))
        case {"type": "array", "items": items}:
            item = _type(items)
            return f"readonly ({item})[]" if "|" in item else f"readonly {item}[]"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"{{ readonly [key: string]: {_type(values)} }}"
        case {"type": "object"}:
            return "{ readonly [key: string]: Json }"
        case {"type": kind}:
            return _PRIMITIVES[kind]
        case _:
            return "Json"


def main(arguments: Sequence[str]) -> int:
    text = generate()
    if "--check" not in arguments:
        TARGET.write_text(text)
        return 0
    if TARGET.exists() and TARGET.read_text() == text:
        return 0
    print(f"{TARGET} is not current. Run: python web/generate_types.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
