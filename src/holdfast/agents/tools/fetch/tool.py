"""The fetch tool: GET one page. Needs an asyncio event loop, because its HTTP client does, which is imported when a
page is first fetched, and in `wiring/warming.py` before that: no start waits for it."""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread
from yarl import URL

from holdfast.agents.models.port import ToolSpec
from holdfast.agents.tools.fetch import body, html
from holdfast.agents.tools.fetch.addresses import is_public, parse
from holdfast.agents.tools.fetch.names import Allowed, Resolve, system_resolve
from holdfast.agents.tools.port import ToolContext, ToolFailed, ToolResult, Traits, shorten
from holdfast.core.parts import Json
from holdfast.core.values import dataclass

if TYPE_CHECKING:
    import aiohttp

_HEADERS: Final = {
    "User-Agent": "Holdfast (fetch tool)",
    "Accept": "text/html, text/*, application/json;q=0.9, application/xml;q=0.8",
    "Accept-Encoding": "gzip, deflate",
}
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class FetchLimits:
    seconds: float = 30.0
    size: int = 3 * 1024 * 1024
    """Bytes of an answer, unpacked."""
    redirects: int = 5
    characters: int = 50_000


@dataclass(frozen=True, slots=True)
class _Page:
    url: URL
    status: int
    media_type: str
    charset: str | None
    data: bytes
    cut: bool


@dataclass(frozen=True, slots=True)
class FetchTool:
    resolve: Resolve = system_resolve
    allowed: Allowed = is_public
    limits: FetchLimits = field(default_factory=FetchLimits)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "fetch",
            "Read a page or a JSON document from the public web (GET). HTML is turned into text.",
            {
                "type": "object",
                "properties": {"url": {"type": "string", "description": "http or https."}},
                "required": ["url"],
                "additionalProperties": False,
            },
        )

    @property
    def traits(self) -> Traits:
        return Traits(repeatable=True, read_only=True, rule="ask")

    def scope(self, args: Mapping[str, Json]) -> str:
        """The host: allowing one says nothing about another."""
        try:
            return URL(args["url"]).host or ""
        except (ValueError, TypeError):
            return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        import aiohttp

        try:
            with anyio.fail_after(self.limits.seconds):
                page = await self._get(_checked(args["url"]))
        except TimeoutError:
            raise ToolFailed(f"No answer within {self.limits.seconds:g} seconds.") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise ToolFailed(f"It could not be fetched: {error}") from None
        if isinstance(page, str):
            return ToolResult(page)
        return await to_thread.run_sync(self._told, page, abandon_on_cancel=True)

    async def _get(self, url: URL) -> _Page | str:
        """The page; or a text that says where it has moved, if that is another host: going there is another call."""
        import aiohttp

        from holdfast.agents.tools.fetch.gate import connector

        timeout = aiohttp.ClientTimeout(total=None)  # the whole call has one limit, redirects included
        for _ in range(self.limits.redirects + 1):
            async with (
                aiohttp.ClientSession(
                    connector=connector(self.resolve, self.allowed),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=timeout,
                    trust_env=False,
                    auto_decompress=False,
                ) as session,
                session.get(url, headers=_HEADERS, allow_redirects=False) as answer,
            ):
                if answer.status not in _REDIRECTS or "Location" not in answer.headers:
                    return await self._read(url, answer)
                target = _checked(str(url.join(URL(answer.headers["Location"]))))
            if _site(target) != _site(url):
                return (
                    f"{url} has moved to {target}, which is another host. Fetch that address if you want to go there."
                )
            url = target
        raise ToolFailed(f"It was redirected more than {self.limits.redirects} times.")

    async def _read(self, url: URL, answer: "aiohttp.ClientResponse") -> _Page:
        media_type = answer.content_type if "Content-Type" in answer.headers else "text/plain"
        if not body.is_readable(media_type):
            raise ToolFailed(f"It is {media_type}, not text: it cannot be read with this tool.")
        encoding = answer.headers.get("Content-Encoding", "").strip().lower()
        data, cut = await body.read(answer.content.iter_any(), encoding, self.limits.size)
        return _Page(url, answer.status, media_type, answer.charset, data, cut)

    def _told(self, page: _Page) -> ToolResult:
        text = body.decode(page.data, page.charset)
        title = ""
        if "html" in page.media_type:
            title, text = html.to_text(text, str(page.url))
        head = f"{page.url} (status {page.status}, {page.media_type}{', cut' if page.cut else ''})"
        lines = [head, *([f"Title: {title}"] if title else []), "", shorten(text, self.limits.characters)]
        return ToolResult("\n".join(lines), is_error=page.status >= 400)


def _checked(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError as error:
        raise ToolFailed(f"{text[:200]!r} is not a URL: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolFailed(f"{text[:200]!r} cannot be fetched: only http and https addresses with a host can.")
    if url.user is not None or url.password is not None:
        raise ToolFailed("The URL carries a user name or password. Give it without.")
    return url.with_fragment(None)


def _site(url: URL) -> str:
    """A page that moves between a name and its `www.` form stays where it was allowed."""
    host = url.host or ""
    return host if parse(host) is not None else host.removeprefix("www.")
