"""Asking an upstream over HTTP: one attempt, and what became of it. aiohttp's types and exceptions go no further than
this file and `openai.py`.

It is imported where it is first used, and in `wiring/warming.py` before that: no start waits for it.
"""

import asyncio
import ipaddress
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from yarl import URL

from holdfast.agents.models.chatstream import failed_body
from holdfast.agents.models.endpoint import Patience
from holdfast.agents.models.failures import Trouble
from holdfast.agents.models.following import Rounds
from holdfast.agents.models.retry import retry_after
from holdfast.core.values import dataclass
from holdfast.ports import Clock

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import ClientResponse
    from aiohttp.http_exceptions import HttpProcessingError

ERROR_BODY = 64 * 1024
LINGER = 1.0


def network_errors() -> "tuple[type[aiohttp.ClientError], type[HttpProcessingError], type[OSError]]":
    import aiohttp
    from aiohttp.http_exceptions import HttpProcessingError

    return aiohttp.ClientError, HttpProcessingError, OSError


class Http:
    """The connections of one event loop, opened when they are first needed. `environment`: where proxies are named."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment or {}
        self._session: aiohttp.ClientSession | None = None
        self.rounds = Rounds()
        self._lingering: dict[ClientResponse, asyncio.TimerHandle] = {}

    def session(self) -> "aiohttp.ClientSession":
        import aiohttp

        if self._session is None or self._session.closed:
            # The number of connections is bounded by the runs that are under way, not here. aiohttp's own look at the
            # environment would also read ~/.netrc, and refuse to send our key where it finds another.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def proxy(self, url: URL) -> str | None:
        return proxy_for(url, self._environment)

    def linger(self, response: "ClientResponse") -> None:
        """An answer is complete and the body's last bytes are a moment behind. If they come, aiohttp keeps the
        connection for the next request, which then needs no handshake; if not, it is closed."""
        if response.connection is not None:
            timer = asyncio.get_running_loop().call_later(LINGER, self._let_go, response)
            self._lingering[response] = timer

    def _let_go(self, response: "ClientResponse") -> None:
        self._lingering.pop(response).cancel()
        abort(response)

    async def aclose(self) -> None:
        for response in list(self._lingering):
            self._let_go(response)
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def proxy_for(url: URL, environment: Mapping[str, str]) -> str | None:
    """The HTTP proxy that the usual variables name for an address; never one for this machine."""
    names = (f"{url.scheme}_proxy", "all_proxy")
    found = (environment.get(name) or environment.get(name.upper()) for name in names)
    proxy = next((value for value in found if value), None)
    host = (url.host or "").lower()
    if proxy is None or is_loopback(url) or not proxy.startswith(("http://", "https://")):
        return None
    exceptions = (environment.get("no_proxy") or environment.get("NO_PROXY") or "").lower()
    for rule in (rule.strip().lstrip(".") for rule in exceptions.split(",")):
        if rule and (rule == "*" or host == rule or host.endswith("." + rule)):
            return None
    return proxy


def is_loopback(url: URL) -> bool:
    host = url.host or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@dataclass(frozen=True, slots=True)
class Ask:
    """One POST, to be repeated as it is."""

    url: URL
    headers: dict[str, str]
    body: bytes
    patience: Patience
    clock: Clock


async def ask(http: Http, request: Ask) -> "ClientResponse | Trouble":
    """An answer whose body is still to be read, or what went wrong. Nothing stays open behind trouble or
    cancellation."""
    import aiohttp

    patience = request.patience
    try:
        async with asyncio.timeout(patience.first_token):
            response = await http.session().post(
                request.url,
                proxy=http.proxy(request.url),
                data=request.body,
                headers=request.headers,
                allow_redirects=False,  # the key is for this host and no other
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=patience.connect),
            )
            try:
                trouble = await _refusal(response, request.clock)
            except BaseException:
                abort(response)
                raise
    except aiohttp.ServerTimeoutError:
        return Trouble("unavailable", f"no connection within {patience.connect:g} s", retry=True)
    except TimeoutError:
        return Trouble("timeout", f"no answer within {patience.first_token:g} s")
    except network_errors() as error:
        return unreachable(error)
    except ValueError:  # a line break in the key; the error would quote it
        return Trouble("auth", "the key or a header has characters that HTTP cannot carry")
    if trouble is not None:
        abort(response)
        return trouble
    return response


def abort(response: "ClientResponse") -> None:
    """Close the socket now, without waiting for what is still to be written or for TLS to say goodbye."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def wake_when_lost(response: "ClientResponse") -> None:
    """Where the framing of a body is broken, aiohttp closes the connection and leaves the body's reader waiting."""
    content = response.content

    def lost(closed: "asyncio.Future[None] | None") -> None:
        if closed is not None and not closed.cancelled():
            closed.exception()  # looked at, so that nobody complains that it was not
        if not content.is_eof() and content.exception() is None:
            import aiohttp

            content.set_exception(aiohttp.ClientPayloadError("the connection is gone"))

    protocol = None if response.connection is None else response.connection.protocol
    if protocol is None:
        return
    closed = protocol.closed
    if closed is None:
        lost(None)
    else:
        closed.add_done_callback(lost)


async def _refusal(response: "ClientResponse", clock: Clock) -> Trouble | None:
    status = response.status
    if 200 <= status < 300:
        if "html" in response.content_type:
            return Trouble("protocol", f"it answered with a web page ({response.content_type})")
        return None
    if 300 <= status < 400:
        to = response.headers.get("Location", "another address")
        return Trouble("bad-request", f"it redirects to {to}; if that is right, set the base URL to it")
    body = b""
    while len(body) < ERROR_BODY and (piece := await response.content.readany()):
        body += piece
    return failed_body(status, body[:ERROR_BODY], retry_after(response.headers, clock.now()))


def unreachable(error: Exception) -> Trouble:
    """In words of ours: those of the library name its types, and may quote headers."""
    import aiohttp
    from aiohttp.http_exceptions import HttpProcessingError

    match error:
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Trouble("bad-request", "the base URL is not a valid address")
        case aiohttp.ClientConnectorDNSError():
            return Trouble("unavailable", "the host's name cannot be resolved", retry=True)
        case aiohttp.ClientConnectorCertificateError():
            return Trouble("unavailable", "its certificate is not valid")
        case aiohttp.ClientSSLError():
            return Trouble("unavailable", "no secure connection could be made")
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno  # its own words are asyncio's, with a tuple for the address
            why = os.strerror(number) if number else "the connection was refused"
            return Trouble("unavailable", f"nothing answers there: {why.lower()}", retry=True)
        case aiohttp.ClientPayloadError():
            return Trouble("unavailable", "the connection broke in the middle of the answer", retry=True)
        case aiohttp.ClientResponseError() | HttpProcessingError():
            return Trouble("protocol", "the answer is no valid HTTP", retry=True)
        case _:
            return Trouble("unavailable", "it closed the connection without an answer", retry=True)
