"""Fetches files that a request names by URL, from public addresses only."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import anyio
from yarl import URL

from holdfast.ports.tool import ToolError
from holdfast.tools.fetch.ssrf_guard import Allowed, guarded_connector, is_public
from holdfast.tools.fetch.tool import read_body

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

_HEADERS: Final = {
    "User-Agent": "Holdfast",
    "Accept": "image/*, application/pdf, text/*",
    "Accept-Encoding": "identity",
}


@dataclass(frozen=True, slots=True)
class FileFetcher:
    max_size: int  # Bytes
    seconds: float = 20.0
    allowed: Allowed = is_public
    resolver: "AbstractResolver | None" = None  # None: the system's name service

    async def fetch(self, address: str) -> tuple[str, str, bytes]:
        """The name, the declared media type and the contents. Redirects are not followed. Raises ToolError."""
        import aiohttp

        url = _checked(address)
        try:
            with anyio.fail_after(self.seconds):
                async with (
                    aiohttp.ClientSession(
                        connector=guarded_connector(self.allowed, self.resolver),
                        cookie_jar=aiohttp.DummyCookieJar(),
                        timeout=aiohttp.ClientTimeout(total=None),
                        trust_env=False,
                        auto_decompress=False,
                    ) as session,
                    session.get(url, headers=_HEADERS, allow_redirects=False) as response,
                ):
                    return await self._read(url, response)
        except TimeoutError:
            raise ToolError(f"it did not answer within {self.seconds:g} seconds") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise ToolError(str(error)) from None

    async def _read(self, url: URL, response: "aiohttp.ClientResponse") -> tuple[str, str, bytes]:
        if response.status != 200:
            raise ToolError(f"it answered with the status {response.status}")
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        data, truncated = await read_body(response.content.iter_any(), encoding, self.max_size)
        if truncated:
            raise ToolError(f"it is larger than {self.max_size:,} bytes")
        return PurePosixPath(url.path).name or "file", response.content_type, data


def _checked(address: str) -> URL:
    try:
        url = URL(address)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host or url.user is not None or url.password is not None:
        raise ToolError("use an http or https URL with a host and without a password")
    return url.with_fragment(None)
