"""Calls to a server. A line that breaks is `Lost`, an answer that refuses is `Refused`; nothing else comes out."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

import aiohttp
from yarl import URL

from holdfast.faces.cli.exits import Lost, Refused
from holdfast.faces.cli.place import Place

SILENCE: Final = 60.0
"""Seconds without a byte, heartbeats included, after which a line is taken for dead."""
_ANSWER: Final = aiohttp.ClientTimeout(total=SILENCE, sock_connect=5.0)
_STREAM: Final = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=SILENCE)
_BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError)


def path(*names: str) -> str:
    """`/api/…` of these names; what a person typed becomes one step of it."""
    return "/".join(["/api", *(quote(name, safe="") for name in names)])


class Client:
    """Use it as a context manager. `place` may be changed: the next call goes there."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Client":
        unix = self.place.socket
        connector = aiohttp.TCPConnector() if unix is None else aiohttp.UnixConnector(str(unix))
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def call(
        self,
        method: str,
        where: str,
        *,
        body: Any = None,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The JSON of the answer, None if it has none."""
        try:
            async with self._request(method, where, _ANSWER, params, headers, json=body) as response:
                await _check(response)
                return None if response.status == 204 else await response.json()
        except _BROKEN as error:
            raise self._lost(error) from error

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        where: str,
        *,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        data: Any = None,
    ) -> AsyncIterator["Answer"]:
        """An answer that comes in pieces; `data` is a body that goes in pieces."""
        sent = {"data": data} if data is not None else {"json": body}
        request = self._request(method, where, _STREAM, params, headers, **sent)
        try:
            response = await request
        except _BROKEN as error:
            raise self._lost(error) from error
        async with response:
            await _check(response)
            yield Answer(response, self._lost)

    def _request(
        self,
        method: str,
        where: str,
        timeout: aiohttp.ClientTimeout,
        params: Mapping[str, str | int] | None,
        headers: Mapping[str, str] | None,
        **sent: Any,
    ) -> Any:
        assert self._session is not None
        url = URL(self.place.url + where, encoded=True).update_query(params or {})
        return self._session.request(
            method,
            url,
            timeout=timeout,
            headers={"Authorization": f"Bearer {self.place.token}", **(headers or {})},
            skip_auto_headers=("Content-Type",) if not any(value is not None for value in sent.values()) else (),
            **{name: value for name, value in sent.items() if value is not None},
        )

    def _lost(self, error: BaseException) -> Lost:
        return Lost(f"The server at {self.place.url} does not answer ({str(error) or type(error).__name__}).")


class Answer:
    def __init__(self, response: aiohttp.ClientResponse, lost: Callable[[BaseException], Lost]) -> None:
        self._response = response
        self._lost = lost

    @property
    def status(self) -> int:
        return self._response.status

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.content.iter_any():
                yield piece
        except _BROKEN as error:
            raise self._lost(error) from error

    async def json(self) -> Any:
        try:
            return await self._response.json()
        except _BROKEN as error:
            raise self._lost(error) from error


async def _check(response: aiohttp.ClientResponse) -> None:
    if response.status < 400:
        return
    try:
        problem = await response.json(content_type=None)
        detail, code = str(problem["detail"]), str(problem["type"])
    except (ValueError, KeyError, TypeError):
        detail, code = f"The server answered {response.status}, and not in our words. Is something else there?", ""
    raise Refused(detail, status=response.status, problem=code)
