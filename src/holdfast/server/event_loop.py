"""The event loop of a server process. It remembers the connections that the process opens to its own port: they are not
the owner's requests (`server.peer_user`)."""

import asyncio
import os
from typing import Any, Final, cast

import uvloop

_MAX_REMEMBERED: Final = 100_000  # More than a process can have connections at once


class ServerEventLoop(uvloop.Loop):
    """Recognizes requests of the server to itself: the URL of a model or of an MCP server can point at this server.
    Such a request comes from the account that runs the server, but not from the person.

    Only connections that the event loop makes are noticed, and not before `connection_made` returns; no protocol writes
    in it."""

    def __init__(self) -> None:
        super().__init__()
        self._ports: set[int] = set()
        self._inodes: dict[int, None] = {}  # In the order of the connections

    def has_opened(self, inode: int) -> bool:
        """Whether the socket with this inode is one of our connections to ourselves."""
        return inode in self._inodes

    async def create_server(self, *args: Any, **options: Any) -> asyncio.Server:
        server = cast(asyncio.Server, await super().create_server(*args, **options))
        self._ports.update(sock.getsockname()[1] for sock in server.sockets)
        return server

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        made = await super().create_connection(*args, **options)
        transport = cast(asyncio.Transport, made[0])
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple) and peer[1] in self._ports:
            # An inode is not used again, unlike an address; so it need not be forgotten when the connection closes.
            self._inodes[os.fstat(transport.get_extra_info("socket").fileno()).st_ino] = None
            if len(self._inodes) > _MAX_REMEMBERED:
                del self._inodes[next(iter(self._inodes))]
        return made
