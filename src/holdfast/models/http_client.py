"""HTTP client for model servers: connects (TLS, proxies, IPv6), sends requests and keeps connections alive. No
redirects, no cookies, no HTTP/2. Time limits and retries: `models.request_policy`."""

import asyncio
import base64
import os
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from aiohappyeyeballs import AddrInfoType, start_connection
from yarl import URL

from holdfast.core.loopback import is_loopback
from holdfast.models.http_connection import HttpConnection, HttpError, HttpResponse, StaleConnectionError
from holdfast.models.read_batcher import ReadBatcher
from holdfast.models.upstream_errors import UpstreamError

KEEP_ALIVE: Final = 30.0  # Seconds for which an idle connection is kept
_ZONE: Final = re.compile(r"%[^\]]*(?=\])")  # Of an IPv6 address: the network interface of this machine
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_HEADER: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class _Route(NamedTuple):
    """Connections of one route are interchangeable."""

    scheme: str
    host: str
    port: int
    proxy: URL | None


def default_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class HttpClient:
    """The connections of one event loop. Their number is bounded by the requests under way, not here.
    `environment` names the proxies."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, *, make_tls: Callable[[], ssl.SSLContext] = default_tls
    ) -> None:
        self.batcher = ReadBatcher()
        self._environment = dict(environment or {})
        self._make_tls = make_tls
        self._tls: ssl.SSLContext | None = None
        self._connections: set[HttpConnection] = set()
        self._idle: dict[_Route, list[HttpConnection]] = {}

    async def request(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        connect_timeout: float = 10.0,
        may_repeat: bool = True,
    ) -> HttpResponse:
        """Returns the response once its head has arrived; raises HttpError. Cancelling closes the socket at once.
        `may_repeat`: whether the request may be sent again if a reused connection closes without an answer; otherwise
        it gets a new connection, because the server may have taken it."""
        if url.scheme not in ("http", "https") or not url.host or url.port is None:
            raise HttpError(UpstreamError("bad-request", "the base URL is not a valid address"))
        proxy = proxy_for(url, self._environment)
        route = _Route(url.scheme, url.host, url.port, None if proxy is None else _parse_proxy(proxy))
        message = _encode(method, url, headers, body, None if url.scheme == "https" else route.proxy)
        while idle := self._idle.get(route):
            reused = idle.pop()
            if not may_repeat:
                reused.abort()  # the new one takes its place
                break
            try:
                return await reused.send(message)
            except StaleConnectionError:  # the server closed it while it was idle
                continue
        connection = await self._connect(route, connect_timeout)
        return await connection.send(message)

    async def aclose(self) -> None:
        """Closes all connections."""
        connections = tuple(self._connections)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.closed.wait()

    # ---- the pool ----

    def _keep(self, route: _Route, connection: HttpConnection) -> None:
        self._idle.setdefault(route, []).append(connection)
        connection.abort_after(KEEP_ALIVE)

    def _forget(self, route: _Route, connection: HttpConnection) -> None:
        self._connections.discard(connection)
        idle = self._idle.get(route, [])
        if connection in idle:
            idle.remove(connection)
        if not idle:
            self._idle.pop(route, None)

    def _new_connection(self, route: _Route) -> HttpConnection:
        return HttpConnection(partial(self._keep, route), partial(self._forget, route))

    # ---- connecting ----

    async def _connect(self, route: _Route, seconds: float) -> HttpConnection:
        try:
            async with asyncio.timeout(seconds):
                if route.proxy is None:
                    connection = self._new_connection(route)
                    await self._open(connection, route.host, route.port, tls=route.scheme == "https")
                else:
                    connection = await self._connect_through(route, route.proxy)
        except TimeoutError:
            error = UpstreamError("unavailable", f"no connection within {seconds:g} s", retry=True, source="connection")
        except ssl.SSLCertVerificationError:
            error = UpstreamError("unavailable", "its certificate is not valid", source="connection")
        except ssl.SSLError:
            error = UpstreamError("unavailable", "no secure connection could be made", source="connection")
        except (socket.gaierror, UnicodeError):
            error = UpstreamError("unavailable", "host not found", retry=True, source="connection")
        except OSError as failed:
            reason = os.strerror(failed.errno) if failed.errno else "the connection was refused"
            error = UpstreamError("unavailable", reason.lower(), retry=True, source="connection")
        else:
            self._connections.add(connection)
            return connection
        raise HttpError(error)

    async def _open(self, connection: HttpConnection, host: str, port: int, *, tls: bool) -> None:
        addresses = await _resolve(host, port)
        if len(addresses) > 1:
            found = await start_connection(addresses, happy_eyeballs_delay=0.25)
            target: dict[str, Any] = {"sock": found}
        else:  # the event loop connects by itself in half the time
            target = {"host": _literal(addresses[0]), "port": port}
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: connection,
            **target,
            ssl=self._tls_context() if tls else None,
            server_hostname=_without_zone(host).rstrip(".") if tls else None,
        )
        connected = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    async def _connect_through(self, route: _Route, proxy: URL) -> HttpConnection:
        """A proxy carries `http` requests itself and opens a tunnel for `https`."""
        assert proxy.host is not None
        assert proxy.port is not None
        if route.scheme == "http":
            connection = self._new_connection(route)
            await self._open(connection, proxy.host, proxy.port, tls=proxy.scheme == "https")
            return connection
        to_proxy = HttpConnection(lambda _: None, lambda _: None)
        await self._open(to_proxy, proxy.host, proxy.port, tls=proxy.scheme == "https")
        host = f"[{route.host}]" if ":" in route.host else route.host
        lines = [f"CONNECT {host}:{route.port} HTTP/1.1", f"Host: {host}:{route.port}", *_proxy_headers(proxy), "", ""]
        response = await to_proxy.send("\r\n".join(lines).encode())
        try:
            if response.status != 200:
                refused = f"the proxy {proxy.host} refused to connect to it (status {response.status})"
                raise HttpError(UpstreamError("unavailable", refused, source="connection"))
            connection = self._new_connection(route)
            transport = await asyncio.get_running_loop().start_tls(
                to_proxy.transport,
                connection,
                self._tls_context(),
                server_hostname=_without_zone(route.host).rstrip("."),
            )
        except BaseException:
            to_proxy.abort()
            raise
        if transport is None:
            raise ConnectionResetError
        connection.connection_made(transport)
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = self._make_tls()
        return self._tls


async def _resolve(host: str, port: int) -> list[AddrInfoType]:
    try:  # a literal address needs no thread
        return [*socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)]
    except socket.gaierror:
        return [*await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _literal(address: AddrInfoType) -> str:
    """The address as text, with the network interface that a link-local one belongs to."""
    host, _, *rest = address[4]
    scope = rest[1] if len(rest) > 1 else 0
    return f"{host}%{scope}" if scope else str(host)


def _without_zone(host: str) -> str:
    """The host as other machines know it: the name of a network interface of this one means nothing to them."""
    return host.partition("%")[0]


def _encode(method: str, url: URL, headers: Mapping[str, str], body: bytes, proxy: URL | None) -> bytes:
    """`proxy`: the one that is asked for the whole address."""
    target = url.raw_path_qs if proxy is None else str(url.with_user(None).with_fragment(None))
    lines = [f"{method} {target} HTTP/1.1", f"Host: {_ZONE.sub('', url.host_port_subcomponent or '')}"]
    names = {name.lower() for name in headers}
    if url.user is not None and "authorization" not in names:
        lines.append(f"Authorization: {_basic_auth(url)}")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or _NOT_IN_HEADER.search(value):  # the message must not quote a key
            raise HttpError(UpstreamError("auth", "the key or a header has characters that HTTP does not allow"))
        lines.append(f"{name}: {value}")
    if proxy is not None:
        lines += _proxy_headers(proxy)
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace") + body


def _parse_proxy(proxy: str) -> URL:
    try:
        url = URL(proxy)
    except ValueError:
        url = URL()
    if url.host is None or url.port is None:
        raise HttpError(UpstreamError("bad-request", "the proxy in the environment is not a valid address"))
    return url


def _proxy_headers(proxy: URL) -> list[str]:
    return [] if proxy.user is None else [f"Proxy-Authorization: {_basic_auth(proxy)}"]


def _basic_auth(url: URL) -> str:
    return "Basic " + base64.b64encode(f"{url.user}:{url.password or ''}".encode()).decode("ascii")


def proxy_for(url: URL, environment: Mapping[str, str]) -> str | None:
    """The HTTP proxy that the usual environment variables name for an address; never one for this machine."""
    names = (f"{url.scheme}_proxy", "all_proxy")
    candidates = (environment.get(name) or environment.get(name.upper()) for name in names)
    proxy = next((value for value in candidates if value), None)
    host = (url.host or "").lower()
    if proxy is None or is_loopback(host) or not proxy.startswith(("http://", "https://")):
        return None
    exceptions = (environment.get("no_proxy") or environment.get("NO_PROXY") or "").lower()
    for rule in (rule.strip().lstrip(".") for rule in exceptions.split(",")):
        if rule and (rule == "*" or host == rule or host.endswith("." + rule)):
            return None
    return proxy
