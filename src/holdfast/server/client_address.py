"""Finds out where a request comes from, also behind trusted reverse proxies, which addresses count as one client
(`network_of`), and from which kind of browser. Which proxies are trusted: `trusted_proxies` of the configuration. Only
`X-Forwarded-For` is read here; its scheme and host, and proxies in front of a server without a password:
`access_rules`."""

import ipaddress
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request

from holdfast.core.loopback import is_loopback

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOCAL: Final = "local"  # The address of a Unix socket
_MAX_HOPS: Final = 10
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrom", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def request_address(request: Request, trusted: Sequence[Network]) -> str:
    """The client's address. Some proxies add a line of their own to `X-Forwarded-For` instead of extending the
    client's, so all lines count, in their order."""
    peer = request.client.host if request.client else None
    return client_address(peer, ", ".join(request.headers.getlist("x-forwarded-for")), trusted)


def client_address(peer: str | None, forwarded: str, trusted: Sequence[Network]) -> str:
    """The peer, or the last address in `X-Forwarded-For` that is not a trusted proxy if the peer is one. Addresses
    before it are the client's own claim."""
    if peer is None:
        return LOCAL
    address = peer
    for hop in reversed(forwarded.rsplit(",", _MAX_HOPS)[-_MAX_HOPS:]):
        found = _parse(hop)
        if not _is_trusted(address, trusted) or found is None:
            break
        address = found
    return address


def network_of(address: str) -> str:
    """The addresses that one client has at will: an IPv4 address, or an IPv6 network of 64 bits."""
    if address == LOCAL or is_loopback(address):
        return address
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address) or found.ipv4_mapped is not None:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False))


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return any(parsed in network for network in trusted)


def _parse(hop: str) -> str | None:
    """`1.2.3.4`, `1.2.3.4:5678`, `::1` or `[::1]:5678`."""
    host = hop.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))  # an IPv6 scope id can be any text
    except ValueError:
        return None


def device_name(user_agent: str) -> str:
    """Such as "Firefox on Linux", for people to recognize their devices by."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "Browser")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), None)
    return browser if system is None else f"{browser} on {system}"
