"""Finds the user account at the other end of a loopback connection, so that a server without a password answers only
the account that started it, and neither itself nor its child processes, such as commands of the shell tool. It works on
Linux (`sock_diag`); on other systems no account is recognized. Whether the account may have access is decided in
`access_rules`."""

import os
import socket
import struct
from collections.abc import Callable
from typing import Final

from anyio import to_thread

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
ESTABLISHED: Final = 1
_ANY: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_QUERY: Final = struct.Struct("=BBBBI")
_ADDRESSES: Final = struct.Struct("!HH16s16s")
_LINK_AND_COOKIE: Final = struct.Struct("=III")
_FOUND: Final = struct.Struct("=BBBB48x3I")
"""Family, state, timer, retransmits; the addresses; expiry, queued bytes received, queued bytes sent; then the user."""

Address = tuple[str, int]


async def find_peer_user(
    peer: Address, own: Address, has_opened: Callable[[int], bool] = lambda inode: False
) -> int | None:
    """The user id that owns the socket at `peer`, connected to `own`; None if it is not known for certain, or if the
    socket is ours, which `has_opened` tells by its inode, or may be that of a child process of ours. While there are
    child processes, another process of our account must be seen to have the socket: a command can hide a socket of its
    own in many ways, but not put it into a process of others."""
    found = _find_socket(peer, own)
    if found is None:
        return None
    user, inode = found
    if has_opened(inode):
        return None
    if user != os.geteuid() or not _has_children():
        return user
    return user if await to_thread.run_sync(_is_of_other_process, inode) else None


def _find_socket(peer: Address, own: Address) -> tuple[int, int] | None:
    """The user id and the inode of the socket at `peer`. A socket that its process has closed belongs to nobody,
    although the kernel still reports a user for it."""
    try:
        family, addresses = _encode(peer, own)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as diag:
            query = _QUERY.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY) + addresses
            diag.send(_HEADER.pack(_HEADER.size + len(query), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + query)
            answer = diag.recv(4096, socket.MSG_DONTWAIT)  # the kernel has answered within `send`
    except (AttributeError, OSError):
        return None  # not Linux, or a sandbox without sock_diag
    _, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _SOCK_DIAG_BY_FAMILY or _FOUND.unpack_from(answer, _HEADER.size)[1] != ESTABLISHED:
        return None
    user, inode = struct.unpack_from("=II", answer, _HEADER.size + _FOUND.size)
    return user, inode


def _has_children() -> bool:
    """Whether any thread of this process has child processes. Zombies count, and are not reaped."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _is_of_other_process(inode: int) -> bool:
    """Whether processes have the socket and all of them are known not to descend from ours. Reads a link for each open
    file of each process, so it is called on a worker thread."""
    holders = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _has_socket(pid, inode)]
    # Afterwards, because a process may have been started while the others were searched.
    return bool(holders) and not any(_may_descend(pid) for pid in holders)


def _has_socket(pid: str, inode: int) -> bool:
    """False also for a process that hides its files."""
    try:
        return any(_target(f"/proc/{pid}/fd/{fd}") == f"socket:[{inode}]" for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:  # it has ended, or we may not list its files
        return False


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return ""  # closed meanwhile


def _may_descend(pid: int) -> bool:
    """Whether the process is, or may be, below this one."""
    while pid not in (0, 1, os.getpid()):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return True  # it has ended, and its children have another parent now
        if parent == os.getpid():
            return True
        pid = parent
    return False


def can_find_users() -> bool:
    """Whether this system tells, tried with a connection of our own."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        return _find_socket(client.getsockname(), server.getsockname()) is not None


def _encode(peer: Address, own: Address) -> tuple[int, bytes]:
    hosts = [host.removeprefix("::ffff:") for host, _ in (peer, own)]
    family = socket.AF_INET6 if ":" in hosts[0] else socket.AF_INET
    packed = [socket.inet_pton(family, host) for host in hosts]
    return family, _ADDRESSES.pack(peer[1], own[1], *packed) + _LINK_AND_COOKIE.pack(0, _ANY, _ANY)
