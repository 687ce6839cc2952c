"""An aiohttp connector that reaches only addresses the SSRF guard allows. A name is resolved once and the address that
was checked is connected to, so DNS rebinding has no second lookup; the check is repeated where sockets are created, so
nothing the HTTP client does bypasses it."""

import errno
import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType

from holdfast.tools.fetch.ssrf_guard import Address, Allowed, Resolve, parse


class AddressNotAllowedError(OSError):
    """The address is not allowed."""


class _Resolver(AbstractResolver):
    def __init__(self, resolve: Resolve, allowed: Allowed) -> None:
        self._resolve = resolve
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolve(host)
        allowed = [address for address in found if self._allowed(address)]
        if not allowed:
            why = "has no address" if not found else "is not on the public internet"
            raise AddressNotAllowedError(errno.EACCES, f"{host} {why}")
        return [_result(host, address, port) for address in allowed]

    async def close(self) -> None:
        return None


def _result(host: str, address: Address, port: int) -> ResolveResult:
    return {
        "hostname": host,
        "host": str(address),
        "port": port,
        "family": socket.AF_INET if address.version == 4 else socket.AF_INET6,
        "proto": socket.IPPROTO_TCP,
        "flags": socket.AI_NUMERICHOST,
    }


def connector(resolve: Resolve, allowed: Allowed) -> aiohttp.TCPConnector:
    """A connector for one request: nothing is pooled or cached."""

    def make_socket(info: AddrInfoType) -> socket.socket:
        family, kind, proto, _, sockaddr = info
        address = parse(str(sockaddr[0]))
        if address is None or not allowed(address):
            raise AddressNotAllowedError(errno.EACCES, f"{sockaddr[0]} is not a public address")
        made = socket.socket(family, kind, proto)
        made.setblocking(False)
        return made

    return aiohttp.TCPConnector(
        resolver=_Resolver(resolve, allowed), use_dns_cache=False, force_close=True, socket_factory=make_socket
    )
