"""Fetches files that a request names by URL, from public addresses only. Sizes and time: `server.context.ServerLimits`;
which addresses: `tools.fetch.ssrf_guard`."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import anyio
from yarl import URL

from holdfast.ports.tool import ToolError
from holdfast.tools.fetch.ssrf_guard import Allowed, check_url, describe_failure, guarded_session, is_public
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
    seconds: float = 20.0
    allowed: Allowed = is_public
    resolver: "AbstractResolver | None" = None  # None: the system's name service

    async def fetch(self, address: str, max_size: int) -> tuple[str, str, bytes]:
        """The name, the declared media type and the contents. Redirects are not followed. Raises ToolError, also if the
        file is larger than `max_size` bytes."""
        import aiohttp

        url = check_url(address)
        try:
            with anyio.fail_after(self.seconds):
                async with (
                    guarded_session(self.allowed, self.resolver) as session,
                    session.get(url, headers=_HEADERS, allow_redirects=False) as response,
                ):
                    return await _read(url, response, max_size)
        except TimeoutError:
            raise ToolError(f"it did not answer within {self.seconds:g} seconds") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise ToolError(describe_failure(error)) from None


async def _read(url: URL, response: "aiohttp.ClientResponse", max_size: int) -> tuple[str, str, bytes]:
    if response.status != 200:
        raise ToolError(f"it answered with the status {response.status}")
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    data, truncated = await read_body(response.content.iter_any(), encoding, max_size)
    if truncated:
        raise ToolError(f"it is larger than {max_size:,} bytes")
    return PurePosixPath(url.path).name or "file", response.content_type, data
