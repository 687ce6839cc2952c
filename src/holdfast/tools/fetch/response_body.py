"""Reads, decompresses and decodes the body of a page, up to a limit."""

import codecs
import re
import zlib
from collections.abc import AsyncIterable

from holdfast.ports.tool import ToolError


async def read(chunks: AsyncIterable[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
    """The bytes, and whether there were more. A compressed body is decompressed piece by piece, so a small one that
    expands to gigabytes is cut off too."""
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise ToolError(f"The page is compressed as {encoding!r}, which is not supported.")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding not in ("", "identity") else None
    body = bytearray()
    async for arrived in chunks:
        chunk = arrived
        while chunk:
            room = limit + 1 - len(body)
            if room <= 0:
                return bytes(body[:limit]), True
            if decoder is None:
                body += chunk[:room]
                break
            try:
                body += decoder.decompress(chunk, room)
            except zlib.error:
                raise ToolError("The page is not validly compressed.") from None
            chunk = decoder.unconsumed_tail
    return bytes(body[:limit]), len(body) > limit


def decode(body: bytes, charset: str | None) -> str:
    """Decodes by the charset of the response, else of the page, else as UTF-8."""
    if charset is None:
        found = re.search(rb"<meta[^>]{0,200}charset=[\"']?([\w-]{1,40})", body[:2048], re.IGNORECASE)
        charset = found[1].decode() if found else "utf-8"
    try:
        codecs.lookup(charset)
        return body.decode(charset, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def is_readable(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith(("json", "xml", "javascript"))
