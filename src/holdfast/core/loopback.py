"""Which host names and addresses mean this machine. Whether a server on such an address needs a password:
`server.access_rules`."""

import ipaddress
from typing import Final

_USUAL: Final = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})


def is_loopback(host: str) -> bool:
    """Whether a host name always means this machine, whatever DNS says."""
    if host in _USUAL:
        return True
    host = host.rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
