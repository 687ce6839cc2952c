"""How deeply JSON from outside may be nested."""

from typing import Final

from holdfast.core.parts import Json

MAX_DEPTH: Final = 100  # Of schemas and arguments: parsers give up at a depth of 200


def is_too_deep(value: Json) -> bool:
    """Whether objects and lists are nested more than `MAX_DEPTH` deep. Goes level by level, so no depth is too much."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        lists = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        if not lists:
            return False
        level = [item for items in lists for item in items]
    return True
