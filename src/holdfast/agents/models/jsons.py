"""JSON as models and their servers write it: nearly always right, so the quick parser goes first."""

import json

from jiter import from_json

from holdfast.core.parts import Json


def loads(data: bytes) -> Json:
    """Forgives bad UTF-8, raw control characters and lone surrogates, which become U+FFFD. ValueError for the rest."""
    try:
        return from_json(data)
    except ValueError:
        pass
    try:
        return _clean(json.loads(data.decode("utf-8", "replace"), strict=False))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _clean(value: Json) -> Json:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {key: _clean(item) for key, item in value.items()}
        case list():
            return [_clean(item) for item in value]
        case _:
            return value
