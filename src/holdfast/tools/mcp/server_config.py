"""The configuration of an MCP server: a program to start, or an address. Does not import the SDK. Which servers there
are: `app.tool_admin`; what a program inherits of the server's environment: `tools.mcp.stdio_transport`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from holdfast.core.loopback import is_loopback
from holdfast.tools.mcp.oauth import OAuthSecrets


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A program that is started on demand. It gets the harmless part of the server's environment, and `env`."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    trusted: bool = True  # Whether its hints about read-only tools are trusted: it runs as the server's user anyway


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server reached over streamable HTTP."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False  # Whether its hints about read-only tools are believed
    oauth: OAuthSecrets | None = field(default=None, compare=False, repr=False)  # None: OAuth is not used

    @property
    def uses_oauth(self) -> bool:
        """Whether requests are signed in with OAuth. A configured `Authorization` header takes precedence."""
        return self.oauth is not None and not any(name.lower() == "authorization" for name in self.headers)


McpServer = StdioServer | HttpServer


def is_local(server: McpServer) -> bool:
    """Whether it runs on this machine."""
    return isinstance(server, StdioServer) or is_loopback(urlsplit(server.url).hostname or "")
