"""The keyring port: password hash, API tokens and provider keys."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ApiToken:
    """An API token of a program. It is shown once and stored as a digest."""

    id: str
    name: str
    sha256: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Keyring:
    """The secrets of a server. Never exported, returned or logged."""

    cookie_key: str = field(repr=False)  # Signs login cookies. Replacing it ends every login.
    password: str | None = field(default=None, repr=False)  # Argon2id hash; None: not required on the local machine
    tokens: tuple[ApiToken, ...] = ()
    provider_keys: Mapping[str, str] = field(default_factory=dict, repr=False)  # Entered in the settings, by provider


class KeyringStore(Protocol):
    """Storage of the keyring. Synchronous; the next `read` sees a change by another process."""

    def read(self) -> Keyring: ...
    def change(self, work: Callable[[Keyring], Keyring]) -> Keyring:
        """Replace the keyring atomically and durably; returns the new one."""
