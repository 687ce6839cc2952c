"""Links that log a browser in once, for the person who has a shell on the server. Other logins:
`server.authenticator`."""

import hashlib
import secrets
from collections import OrderedDict
from typing import Final

LINK_TIME: Final = 300.0
_MAX_LINKS: Final = 20  # The oldest makes room for another


class LoginLinks:
    """They end with the process. The caller passes the current time, and the `cookie_key` of the keyring: a link ends
    when that changes, as it does with the password."""

    def __init__(self) -> None:
        self._links: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        """When each link ends and the key at that time, by the digest of its token."""

    def issue(self, now: float, key: str) -> str:
        """Returns the token of a new link."""
        token = secrets.token_urlsafe(32)
        self._links[_digest(token)] = now + LINK_TIME, key
        if len(self._links) > _MAX_LINKS:
            self._links.popitem(last=False)
        return token

    def redeem(self, token: str, now: float, key: str) -> bool:
        """Whether the token is that of a link that has not been used and has not ended. It is used by this."""
        ends_at, issued_with = self._links.pop(_digest(token), (now, key))
        return ends_at > now and issued_with == key

    def end_all(self) -> None:
        self._links.clear()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
