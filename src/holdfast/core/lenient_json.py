"""Lenient JSON parser for what models and servers write. The fast strict parser is tried first. How large and how deep
JSON may be: `core.json_limits`."""

import json

from jiter import from_json

from holdfast.core.parts import Json


def loads(data: bytes) -> Json:
    """Accepts invalid UTF-8 and lone surrogates (as U+FFFD) and raw control characters. Raises ValueError otherwise."""
    try:
        return from_json(data)
    except ValueError:
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"), strict=False)
        text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
