"""Lists that come in pages."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from holdfast.faces.cli.client import Client

_PAGE = 200


async def pages(
    client: Client, where: str, params: Mapping[str, str | int] | None = None, limit: int | None = None
) -> AsyncIterator[Any]:
    """Item after item, at most `limit`."""
    left, cursor = limit, None
    while left is None or left > 0:
        asked = {**(params or {}), "limit": _PAGE if left is None else min(left, _PAGE)}
        if cursor is not None:
            asked["cursor"] = cursor
        page = await client.call("GET", where, params=asked)
        for item in page["items"]:
            yield item
        cursor = page["next"]
        if cursor is None:
            return
        left = None if left is None else left - len(page["items"])
