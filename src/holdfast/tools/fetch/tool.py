"""The fetch tool: GET one page. aiohttp is imported when a page is first fetched, and by `app/deferred_imports.py` in
the background, so that start-up does not wait for it. Which addresses it may read: `tools.fetch.ssrf_guard`."""

import codecs
import re
import zlib
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import anyio
from anyio import to_thread
from yarl import URL

from holdfast.core.parts import Json
from holdfast.ports.tool import ToolContext, ToolError, ToolResult, ToolTraits
from holdfast.tools.fetch import html_to_text
from holdfast.tools.fetch.ssrf_guard import Allowed, check_url, describe_failure, guarded_session, is_public, parse
from holdfast.tools.result_text import shorten
from holdfast.tools.schemas import object_spec

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

_HEADERS: Final = {
    "User-Agent": "Holdfast (fetch tool)",
    "Accept": "text/html, text/*, application/json;q=0.9, application/xml;q=0.8",
    "Accept-Encoding": "gzip, deflate",
}
_NOT_FOR_PAGES: Final = frozenset({"punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined"})
"""Encodings of Python that no page has; punycode takes quadratic time."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class FetchLimits:
    seconds: float = 30.0
    size: int = 3 * 1024 * 1024  # Bytes of a page, decompressed
    redirects: int = 5
    characters: int = 50_000


@dataclass(frozen=True, slots=True)
class FetchTool:
    allowed: Allowed = is_public
    limits: FetchLimits = field(default_factory=FetchLimits)
    resolver: "AbstractResolver | None" = None  # None: the system's name service
    spec: ClassVar = object_spec(
        "fetch",
        "Read a page or a JSON document from the public web (GET). HTML is converted to text.",
        {"url": {"type": "string", "description": "http or https."}},
        "url",
    )
    traits: ClassVar = ToolTraits(repeatable=True, read_only=True, rule="ask")

    def scope(self, args: Mapping[str, Json]) -> str:
        """The host: a grant for one host does not cover another."""
        try:
            return URL(args["url"]).host or ""
        except (ValueError, TypeError):
            return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        import aiohttp

        try:
            with anyio.fail_after(self.limits.seconds):
                render = await self._get(check_url(args["url"]))
                return await to_thread.run_sync(render, abandon_on_cancel=True)
        except TimeoutError:
            raise ToolError(f"The page did not answer within {self.limits.seconds:g} seconds.") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise ToolError(f"Could not fetch the page: {describe_failure(error)}") from None

    async def _get(self, url: URL) -> Callable[[], ToolResult]:
        """A function that renders the page, or says that it moved to another host, which needs a call of its own."""
        for _ in range(self.limits.redirects + 1):
            async with (
                guarded_session(self.allowed, self.resolver) as session,
                session.get(url, headers=_HEADERS, allow_redirects=False) as response,
            ):
                if response.status not in _REDIRECTS or "Location" not in response.headers:
                    return await self._read(url, response)
                target = check_url(str(url.join(URL(response.headers["Location"]))))
            if _site(target) != _site(url):
                moved = f"{url} has moved to {target}, which is another host. Fetch that address to read it."
                return partial(ToolResult, moved)
            url = target
        raise ToolError(f"The page redirects more than {self.limits.redirects} times.")

    async def _read(self, url: URL, response: "aiohttp.ClientResponse") -> Callable[[], ToolResult]:
        media_type = response.content_type if "Content-Type" in response.headers else "text/plain"
        if not _is_readable(media_type):
            raise ToolError(f"The page is {media_type}, not text, so this tool cannot read it.")
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        data, truncated = await read_body(response.content.iter_any(), encoding, self.limits.size)
        status, charset = response.status, response.charset

        def render() -> ToolResult:
            title, text = "", _decode(data, charset)
            if "html" in media_type:
                title, text = html_to_text.to_text(text, str(url))
            head = f"{url} (status {status}, {media_type}{', truncated' if truncated else ''})"
            lines = [head, *([f"Title: {title}"] if title else []), "", shorten(text, self.limits.characters)]
            return ToolResult("\n".join(lines), is_error=status >= 400)

        return render


async def read_body(chunks: AsyncIterable[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
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


def _decode(body: bytes, charset: str | None) -> str:
    """Decodes by the charset of the response, else of the page, else as UTF-8."""
    if charset is None:
        found = re.search(rb"<meta[^>]{0,200}charset=[\"']?([\w-]{1,40})", body[:2048], re.IGNORECASE)
        charset = found[1].decode() if found else "utf-8"
    try:
        name = codecs.lookup(charset).name
        return body.decode("utf-8" if name in _NOT_FOR_PAGES else name, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def _is_readable(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith(("json", "xml", "javascript"))


def _site(url: URL) -> str:
    """A name and its `www.` form count as one site."""
    host = url.host or ""
    return host if parse(host) is not None else host.removeprefix("www.")
