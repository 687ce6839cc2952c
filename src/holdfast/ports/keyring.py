"""The keyring port: password hash, logins, API tokens and provider keys. Where it is stored: `storage.key_file`, in a
cluster `storage.postgres.keyring`; who checks credentials: `server.authenticator`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

LOGIN_DAYS: Final = 30  # After which the password must be entered again, however often the login is used
DAY: Final = 24 * 3600.0
CLOCK_SKEW: Final = 300.0  # Seconds by which the clock of the node that made a login may be ahead of ours
_SAVE_USES_EVERY: Final = 600.0


@dataclass(frozen=True, slots=True)
class ApiToken:
    """An API token of a program. It is shown once and stored as a digest."""

    id: str
    name: str
    sha256: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Login:
    """A browser that is logged in. Its cookie is stored as a digest."""

    id: str
    sha256: str
    device: str  # Such as "Firefox on Linux"
    address: str
    created_at: float  # When the password was entered
    used_at: float  # The last request, to within `unsaved_use` seconds

    def is_valid(self, now: float, idle: float) -> bool:
        """`idle`: seconds after which an unused login ends."""
        return -CLOCK_SKEW <= now - self.created_at <= LOGIN_DAYS * DAY and now - self.used_at <= idle


def unsaved_use(idle: float) -> float:
    """Seconds by which the stored last use of a login may be older than the real one."""
    return min(_SAVE_USES_EVERY, idle / 10)


@dataclass(frozen=True, slots=True)
class Keyring:
    """The secrets of a server. Never exported, returned or logged."""

    cookie_key: str = field(repr=False)  # Signs the cookies of known browsers
    password: str | None = field(default=None, repr=False)  # Argon2id hash; None: not required on the local machine
    tokens: tuple[ApiToken, ...] = ()
    provider_keys: Mapping[str, str] = field(default_factory=dict, repr=False)  # Entered in the settings, by provider
    logins: tuple[Login, ...] = ()
    configured_password: str | None = field(default=None, repr=False)
    """Argon2id hash of the password that the configuration named at the last start; empty if it named none, and None if
    there was no start yet."""


class KeyringStore(Protocol):
    """Storage of the keyring. Synchronous; `read` sees a change by another process at once, and one by another node
    after at most `lag` seconds, usually milliseconds."""

    lag: float

    def read(self) -> Keyring: ...
    def change(self, work: Callable[[Keyring], Keyring]) -> Keyring:
        """Replace the keyring atomically and durably; returns the new one."""
