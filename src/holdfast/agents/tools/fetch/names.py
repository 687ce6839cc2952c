"""From a host's name to its addresses, and who may be connected to: what a test replaces."""

import socket
from collections.abc import Awaitable, Callable, Sequence

import anyio

from holdfast.agents.tools.fetch.addresses import Address, parse

Resolve = Callable[[str], Awaitable[Sequence[Address]]]
Allowed = Callable[[Address], bool]


async def system_resolve(host: str) -> Sequence[Address]:
    found = await anyio.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    addresses = [parse(str(sockaddr[0])) for *_, sockaddr in found]
    return [address for address in addresses if address is not None]
