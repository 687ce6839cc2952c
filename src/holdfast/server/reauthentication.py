"""Asks for the password again before changes that would let a stolen cookie or token run programs or outlive itself.
How recent the login must be: `REAUTHENTICATE_AFTER` in `server.authenticator`; which changes ask: the callers
in `server.routes`."""

from starlette.requests import Request

from holdfast.core.errors import ReauthenticationRequiredError
from holdfast.server.access_rules import CREDENTIALS, Credentials


def require_recent_login(request: Request, what: str) -> None:
    """Raises unless the password was entered within the last five minutes. Without a password nobody can be asked, and
    commands on this machine, which have the server's own token, can read the keyring anyway."""
    credentials: Credentials = request.scope[CREDENTIALS]
    if not credentials.recent:
        raise ReauthenticationRequiredError(what)
