"""HTTP clients for remote MCP servers. With OAuth a server names addresses to fetch: one on the internet cannot name
those of this machine or its network."""

from typing import Any, Final
from urllib.parse import urlsplit

from holdfast.ports.tool import ToolError
from holdfast.tools.fetch.ssrf_guard import is_public, parse

PING: Final = {"jsonrpc": "2.0", "id": 0, "method": "ping"}
"""The body of a request that any server answers, or refuses with a status that tells why."""
ACCEPT: Final = {"Accept": "application/json, text/event-stream"}
_LOCAL_SUFFIXES: Final = (".localhost", ".local", ".lan", ".internal", ".home.arpa")


def guarded_client(server_url: str, **options: Any) -> Any:
    """An `httpx2.AsyncClient` for the server. Other origins must be public, unless the server itself is local."""
    import httpx2

    from holdfast.http_limits import limited_hooks  # imports httpx2, which the start does not wait for

    own = httpx2.URL(server_url)

    async def guard(request: httpx2.Request) -> None:
        url = request.url
        if (url.scheme, url.host, url.port) != (own.scheme, own.host, own.port):
            request.extensions["trace"] = _ConnectionGuard(url.host).check

    hooks = limited_hooks()
    if not _is_on_own_network(server_url):
        hooks["request"].append(guard)
    return httpx2.AsyncClient(event_hooks=hooks, **options)


def _is_on_own_network(url: str) -> bool:
    """Decides by the host name alone, because the owner of a name controls what it resolves to."""
    host = urlsplit(url).hostname or ""
    address = parse(host)
    if address is not None:
        return not is_public(address)
    return "." not in host or host.endswith(_LOCAL_SUFFIXES)


class _ConnectionGuard:
    """Checks the address of a new connection before anything is sent: DNS rebinding has no second lookup."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._is_proxy = False  # A proxy from the environment was chosen by whoever runs the server

    async def check(self, event: str, info: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.started":
            self._is_proxy = info["host"] != self._host
        elif event == "connection.connect_tcp.complete" and not self._is_proxy:
            stream = info["return_value"]
            address = parse(str(stream.get_extra_info("server_addr")[0]))
            if address is None or not is_public(address):
                await stream.aclose()
                raise ToolError(
                    f"It asks to sign in at {self._host}, which is not on the public internet. If you trust it, enter "
                    "an access token for the server instead."
                )
