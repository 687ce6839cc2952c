"""Connections that reach only addresses that were allowed.

A name is resolved once; what is connected to is the very address that was judged, so an answer that changes between
two lookups (DNS rebinding) has no second lookup to change. The last judge stands where the socket is made: nothing
that the HTTP client does on its own, such as taking an address out of the URL, gets past it.
"""

import errno
import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType

from holdfast.agents.tools.fetch.addresses import Address, parse
from holdfast.agents.tools.fetch.names import Allowed, Resolve


class NotAllowed(OSError):
    """The address is not public."""


class _Resolver(AbstractResolver):
    def __init__(self, resolve: Resolve, allowed: Allowed) -> None:
        self._resolve = resolve
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolve(host)
        good = [address for address in found if self._allowed(address)]
        if not good:
            why = "has no address" if not found else "does not lead to the public internet"
            raise NotAllowed(errno.EACCES, f"{host} {why}")
        return [_result(host, address, port) for address in good]

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
    """For one request: nothing is pooled or remembered."""

    def make_socket(info: AddrInfoType) -> socket.socket:
        family, kind, proto, _, sockaddr = info
        address = parse(str(sockaddr[0]))
        if address is None or not allowed(address):
            raise NotAllowed(errno.EACCES, f"{sockaddr[0]} is not an address of the public internet")
        made = socket.socket(family, kind, proto)
        made.setblocking(False)
        return made

    return aiohttp.TCPConnector(
        resolver=_Resolver(resolve, allowed), use_dns_cache=False, force_close=True, socket_factory=make_socket
    )
