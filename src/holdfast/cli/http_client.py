"""HTTP client for the API. It raises only ConnectionLostError and ServerRefusedError."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from yarl import URL

from holdfast.cli.exit_codes import ConnectionLostError, ServerRefusedError
from holdfast.server_file import ServerAddress

READ_TIMEOUT: Final = 60.0  # Seconds without a byte, heartbeats included, after which the connection is considered lost
_CALL_TIMEOUT: Final = aiohttp.ClientTimeout(total=READ_TIMEOUT, sock_connect=5.0)
IMPORT_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=600.0)
"""The response comes when the session is stored: a large one takes minutes on a slow disk."""
_STREAM_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=READ_TIMEOUT)
_PAGE_SIZE: Final = 200

Params = Mapping[str, str | int]


class ApiClient:
    """An async context manager. Changing `address` affects the next call."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        unix = address.socket
        connector = aiohttp.TCPConnector() if unix is None else aiohttp.UnixConnector(str(unix))
        self._session = aiohttp.ClientSession(connector=connector)

    async def __aenter__(self) -> "ApiClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, **options: Any) -> Any:
        """Returns the JSON of the response, or None if it is empty. `options` are those of `stream`."""
        async with self.stream(method, path, limits=_CALL_TIMEOUT, **options) as response:
            return None if response.status == 204 else await response.json()

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        data: Any = None,
        limits: aiohttp.ClientTimeout = _STREAM_TIMEOUT,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yields a response to be read in chunks. `body` is sent as JSON, `data` as it is."""
        request = self._session.request(
            method,
            URL(self.address.url + path, encoded=True).update_query(params or {}),
            headers={"Authorization": f"Bearer {self.address.token}", **(headers or {})},
            skip_auto_headers=("Content-Type",) if body is None and data is None else (),
            timeout=limits,
            **({"json": body} if data is None else {"data": data}),
        )
        # Other errors of the operating system, such as a full disk, may be those of the caller's own files.
        try:
            async with request as response:
                if response.status >= 400:
                    raise await _refusal(response)
                yield response
        except (aiohttp.ClientError, TimeoutError, ConnectionResetError) as error:
            raise ConnectionLostError(
                f"The server at {self.address.url} does not respond ({str(error) or type(error).__name__})."
            ) from error

    async def pages(self, path: str, params: Params, limit: int | None = None) -> AsyncIterator[list[Any]]:
        """Yields the pages of a list, with at most `limit` items in total."""
        query = dict(params)
        remaining = float("inf") if limit is None else limit
        while remaining > 0:
            page = await self.call("GET", path, params={**query, "limit": int(min(remaining, _PAGE_SIZE))})
            yield page["items"]
            if page["next"] is None:
                return
            query["cursor"] = page["next"]
            remaining -= len(page["items"])


async def _refusal(response: aiohttp.ClientResponse) -> ServerRefusedError:
    try:
        problem = await response.json(content_type=None)
        detail, code = str(problem["detail"]), str(problem["type"])
    except (ValueError, KeyError, TypeError):
        detail, code = f"Unexpected response ({response.status}). Is another program using this port?", ""
    return ServerRefusedError(detail, status=response.status, problem=code)
