"""The body of an answer: read up to a limit, unpacked up to a limit, and decoded."""

import codecs
import re
import zlib
from collections.abc import AsyncIterable

from holdfast.agents.tools.port import ToolFailed


async def read(chunks: AsyncIterable[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
    """The bytes, and whether there were more. What is packed is unpacked piece by piece: a small answer that unpacks to
    gigabytes is cut like any other."""
    unpack = _unpacker(encoding)
    body = bytearray()
    async for arrived in chunks:
        chunk = arrived
        while chunk:
            room = limit + 1 - len(body)
            if room <= 0:
                return bytes(body[:limit]), True
            if unpack is None:
                body += chunk[:room]
                break
            try:
                body += unpack.decompress(chunk, room)
            except zlib.error:
                raise ToolFailed("The answer is packed in a way that cannot be read.") from None
            chunk = unpack.unconsumed_tail
    return bytes(body[:limit]), len(body) > limit


def _unpacker(encoding: str) -> "zlib._Decompress | None":
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(zlib.MAX_WBITS | 32)
    raise ToolFailed(f"The answer is packed as {encoding!r}, which was not asked for.")


def decode(body: bytes, charset: str | None) -> str:
    """By what the answer says, else by what the page says, else as UTF-8."""
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
