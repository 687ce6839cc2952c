"""Decides when the password must be entered again: before changes that would let a stolen cookie or token run programs
or outlive itself. `SensitiveChange` lists them; `docs/how-to/access.md` lists them for people."""

from typing import Final, Literal

from starlette.requests import Request

from holdfast.core.errors import ReauthenticationRequiredError
from holdfast.ports.keyring import Login
from holdfast.server.access_rules import CREDENTIALS, Credentials

REAUTHENTICATE_AFTER: Final = 300.0  # Seconds since the password was entered

SensitiveChange = Literal[
    "create a token",
    "store a key",
    "connect a model provider",
    "download the small model",
    "add or change an agent",
    "start an agent",
    "add or change an MCP server",
    "sign in to an MCP server",
    "change the rules for tools",
    "always allow a tool",
    "make a backup",
]


def is_recent(login: Login | None, now: float, *, password_set: bool, is_server_token: bool) -> bool:
    """Without a password nobody can be asked, and commands on this machine, which have the server's own token, can read
    the keyring anyway."""
    return not password_set or is_server_token or (login is not None and now - login.created_at <= REAUTHENTICATE_AFTER)


def require_recent_login(request: Request, what: SensitiveChange) -> None:
    credentials: Credentials = request.scope[CREDENTIALS]
    if not credentials.recent:
        raise ReauthenticationRequiredError(what)
