"""SSRF guard: which URLs the fetch tool may open (`check_url`) and which addresses it may connect to, with the aiohttp
connector that enforces it. An address that is not clearly public is refused (`is_public`, the default of `tool` and
`file_fetcher`; no setting changes it).
The check is made where sockets are created, on the very address that is then connected to: nothing the HTTP client does
bypasses it, and DNS rebinding has no second lookup."""

import errno
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Final

from yarl import URL

from holdfast.ports.tool import ToolError

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver
    from aiohttp.connector import AddrInfoType

Address = IPv4Address | IPv6Address
Allowed = Callable[[Address], bool]

_NOT_PUBLIC_4: Final = tuple(
    IPv4Network(net)
    for net in (
        "0.0.0.0/8",  # "this network"
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local; cloud metadata services hand out credentials here
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_PUBLIC_6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    IPv6Network(net)
    for net in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",
        "3fff::/20",
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_6TO4: Final = IPv6Network("2002::/16")


def parse(text: str) -> Address | None:
    """The address, or None for a name. A zone (`fe80::1%eth0`) stays with it."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """An address that embeds another one is as public as the embedded one."""
    if isinstance(address, IPv6Address):
        inner = _embedded(address)
        if inner is None:
            return address in _PUBLIC_6 and not any(address in net for net in _NOT_PUBLIC_6)
        address = inner
    return not any(address in net for net in _NOT_PUBLIC_4)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _6TO4:
        return address.sixtofour
    return None


def guarded_connector(allowed: Allowed, resolver: "AbstractResolver | None") -> "aiohttp.TCPConnector":
    """A connector for one request: nothing is pooled or cached."""
    import aiohttp

    def make_socket(info: "AddrInfoType") -> socket.socket:
        family, kind, proto, _, sockaddr = info
        address = parse(str(sockaddr[0]))
        if address is None or not allowed(address):
            raise OSError(errno.EACCES, f"{sockaddr[0]} is not on the public internet")
        made = socket.socket(family, kind, proto)
        made.setblocking(False)
        return made

    return aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, force_close=True, socket_factory=make_socket)


def describe_failure(error: Exception) -> str:
    """Why a request failed, without the address that a name stands for if that is not public."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, OSError) and cause.errno == errno.EACCES:
        return "private addresses are blocked."
    return str(error)


def guarded_session(allowed: Allowed, resolver: "AbstractResolver | None") -> "aiohttp.ClientSession":
    """A session for one request. It has no time limit: the caller's covers everything, redirects included."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=guarded_connector(allowed, resolver),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=False,
        auto_decompress=False,
    )


def check_url(text: str) -> URL:
    """The URL if it may be fetched, without its fragment. Raises ToolError."""
    try:
        url = URL(text)
    except ValueError as error:
        raise ToolError(f"{text[:200]!r} is not a URL: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolError(f"{text[:200]!r} cannot be fetched. Use an http or https URL with a host.")
    if url.user is not None or url.password is not None:
        raise ToolError("The URL contains a user name or password. Remove it and try again.")
    return url.with_fragment(None)
