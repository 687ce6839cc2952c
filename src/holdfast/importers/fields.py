"""Reads fields of foreign JSON. The structure is required, and an error names its place; what is only decoration (a
title, a time, a model) is taken if it has the expected type and ignored otherwise."""

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from holdfast.core.errors import InvalidInputError
from holdfast.core.events import Usage
from holdfast.importers.json_objects import StoredList, StoredObject, parse_json

Json = Any
Object = Mapping[str, Any]
Items = list[Json] | StoredList

_MAX_DEPTH: Final = 64  # Levels of a tool's arguments or result
_MILLISECONDS: Final = 100_000_000_000.0  # Larger times are milliseconds: in seconds it is the year 5138
_LATEST: Final = 1000 * _MILLISECONDS
_VALUE_SIZE: Final = 64  # Bytes of memory of a value without its text
_MAX_URL_HEAD: Final = 1000  # Characters of a `data:` URL before its content
_MAX_ESCAPES: Final = 1_000_000  # Percent-encoded bytes of a `data:` URL: each is a piece in memory
_MAX_TOKENS: Final = 2**40  # As in `models.usage`, which the server must not reach through this module


def require_object(value: Json, place: str) -> Object:
    if not isinstance(value, dict | StoredObject):
        raise InvalidInputError(place, f"expected an object, found {_kind(value)}")
    return value


def require_list(value: Json, place: str) -> Items:
    if not isinstance(value, list | StoredList):
        raise InvalidInputError(place, f"expected a list, found {_kind(value)}")
    return value


def require_text(value: Json, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInputError(place, f"expected a non-empty string, found {_kind(value)}")
    return value


def _kind(value: Json) -> str:
    names = {
        **dict.fromkeys((dict, StoredObject), "an object"),
        **dict.fromkeys((list, StoredList), "a list"),
        str: "a string",
        bool: "a boolean",
        type(None): "nothing",
    }
    return names.get(type(value), "a number")


def text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def objects(value: Json) -> list[Object]:
    """The objects of an optional list."""
    return list(each_object(value))


def each_object(value: Json) -> Iterator[Object]:
    """`objects` of a list that can be large."""
    return (item for item in (value if isinstance(value, list | StoredList) else ()) if isinstance(item, dict))


def seconds(value: Json) -> float | None:
    """Seconds since the epoch of a number of seconds or milliseconds, or of an ISO 8601 time."""
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value)
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LATEST:
        return float(value) / 1000 if value > _MILLISECONDS else float(value)
    return None


def usage(data: Json, read: str, written: str) -> Usage | None:
    if not isinstance(data, dict):
        return None
    counts = [count for name in (read, written) if type(count := data.get(name)) is int and 0 <= count <= _MAX_TOKENS]
    return Usage(counts[0], counts[1]) if len(counts) == 2 else None


def parse_arguments(value: Json) -> Json:
    """The arguments of a tool call, which most formats write as JSON text."""
    if isinstance(value, str):
        try:
            value = parse_json(value) if value.strip() else {}
        except ValueError:
            return {"input": value}
        if isinstance(value, str):  # encoded twice
            return parse_arguments(value) if value[:1] in "{[" else {"input": value}
    return bounded(value if isinstance(value, dict) else {"input": value})


def bounded(value: Json) -> Json:
    """The value, or its JSON text if it is nested too deeply or has numbers that JSON does not have."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH or any(isinstance(item, float) and not isfinite(item) for item in level):
            return _as_text(value)
        below: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        level = below
    return value


def memory_size(value: Json) -> int:
    """About how many bytes it takes."""
    level, size = [value], 0
    while level:
        below: list[Json] = []
        for each in level:
            if isinstance(each, str):
                size += len(each)
            elif isinstance(each, dict):
                size += sum(map(len, each))
                below += each.values()
            elif isinstance(each, list):
                below += each
        size += _VALUE_SIZE * len(level)
        level = below
    return size


def _as_text(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply)"


def decode_data_url(url: str) -> tuple[str, bytes] | None:
    """The media type and the content of a `data:` URL; None if it is not one."""
    head, comma, body = url.partition(",")
    if not head.startswith("data:") or not comma or len(head) > _MAX_URL_HEAD:
        return None
    media_type, *options = head.removeprefix("data:").split(";")
    is_base64 = "base64" in options
    if not is_base64 and body.count("%") > _MAX_ESCAPES:
        return None
    try:
        data = b64decode(body, validate=False) if is_base64 else unquote_to_bytes(body)
    except (Base64Error, ValueError):
        return None
    return media_type or "text/plain", data
