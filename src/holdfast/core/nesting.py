"""How deeply JSON from outside may be nested, and how large it may be."""

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


def is_too_large(value: Json, limit: int) -> bool:
    """Whether the value is nested too deeply, or longer than `limit` characters at least. Stops at the limit, so it is
    fast for every value, unlike writing it as text."""
    level, size = [value], 0
    for _ in range(MAX_DEPTH + 1):
        nested: list[Json] = []
        for each in level:
            size += len(each) if isinstance(each, str) else 1
            if isinstance(each, dict):
                size += sum(map(len, each)) + len(each)
                nested += each.values()
            elif isinstance(each, list):
                size += len(each)
                nested += each
            if size > limit:
                return True
        if not nested:
            return False
        level = nested
    return True
