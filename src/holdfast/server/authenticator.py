"""Checks passwords, login cookies and API tokens against the keyring."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import anyio
from anyio import to_thread
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from itsdangerous import BadSignature, TimestampSigner

from holdfast.core.errors import InvalidInputError, NotAllowedError
from holdfast.ports.clock import Clock
from holdfast.ports.keyring import ApiToken, KeyringStore
from holdfast.server.access_rules import Credentials

COOKIE: Final = "holdfast"
COOKIE_DAYS: Final = 30
_SKEW: Final = 300.0  # Seconds by which the clock of the node that issued a cookie may be ahead of ours
MIN_PASSWORD: Final = 8


class _Signer(TimestampSigner):
    def __init__(self, key: str, salt: str, clock: Clock) -> None:
        super().__init__(key, salt=salt)
        self._clock = clock

    def get_timestamp(self) -> int:
        return int(self._clock.now())


class Authenticator:
    def __init__(
        self, keys: KeyringStore, clock: Clock, server_token: str | None = None, password: str | None = None
    ) -> None:
        """`server_token`: for commands on this machine, valid while the server runs. `password`: configured outside the
        keyring; it takes precedence over the stored one."""
        self.keys = keys
        self.clock = clock
        self._server_token = None if server_token is None else _digest(server_token)
        self._hasher = PasswordHasher()
        self._configured = None if password is None else self._hasher.hash(password)
        self._configured_digest = None if password is None else _digest(password)
        self._verifying = anyio.CapacityLimiter(1)  # argon2 needs 64 MiB and tens of milliseconds by design

    @property
    def _password(self) -> str | None:
        return self._configured or self.keys.read().password

    @property
    def password_set(self) -> bool:
        return self._password is not None

    def check(self, headers: Mapping[str, str]) -> Credentials:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token if scheme.lower() == "bearer" else headers.get("x-api-key", "")  # as Anthropic's clients send it
        known = bool(token) and self._knows(token.strip())
        return Credentials(cookie="cookie" in headers and self._is_signed(headers["cookie"]), token=known)

    def _knows(self, token: str) -> bool:
        given = _digest(token)
        known = [item.sha256 for item in self.keys.read().tokens]
        if self._server_token is not None:
            known.append(self._server_token)
        return sum(hmac.compare_digest(given, digest) for digest in known) > 0  # compares all: constant time

    # ---- cookies ----

    def _signer(self) -> _Signer:
        """Its salt contains the password's hash, so that a new password ends every login. For a configured password
        it contains the digest, which is the same on every node."""
        return _Signer(self.keys.read().cookie_key, f"login {self._configured_digest or self._password}", self.clock)

    def cookie(self) -> str:
        return self._signer().sign(secrets.token_hex(16)).decode()

    def _is_signed(self, header: str) -> bool:
        # Not `SimpleCookie`: the time it takes grows with the square of a hostile header's length.
        pairs = (pair.strip().partition("=") for pair in header.split(";"))
        value = next((value for name, _, value in pairs if name == COOKIE), "")
        try:
            _, issued = self._signer().unsign(value, return_timestamp=True)
        except BadSignature:
            return False
        # The signer's own age check rejects a cookie of a node whose clock is a second ahead.
        return -_SKEW <= self.clock.now() - issued.timestamp() <= COOKIE_DAYS * 24 * 3600

    # ---- password ----

    async def is_password(self, password: str) -> bool:
        hashed = self._password
        return hashed is not None and await to_thread.run_sync(self._verify, hashed, password, limiter=self._verifying)

    async def change_password(self, password: str) -> None:
        """Ends every login."""
        if self._configured is not None:
            raise NotAllowedError(
                "change the password", "it is set by HOLDFAST_PASSWORD or holdfast.toml; change it there"
            )
        if len(password) < MIN_PASSWORD:
            raise InvalidInputError("new", f"must have at least {MIN_PASSWORD} characters")
        await to_thread.run_sync(set_password, self.keys, password, limiter=self._verifying)

    def _verify(self, hashed: str, password: str) -> bool:
        try:
            return self._hasher.verify(hashed, password)
        except (Argon2Error, InvalidHashError):
            return False


def set_password(keys: KeyringStore, password: str | None) -> None:
    """Sets or removes the password; both end every login."""
    hashed = None if password is None else PasswordHasher().hash(password)
    keys.change(lambda ring: replace(ring, password=hashed, cookie_key=secrets.token_hex(32)))


def issue_token(keys: KeyringStore, name: str, now: float) -> tuple[ApiToken, str]:
    secret = f"hf_{secrets.token_urlsafe(32)}"
    token = ApiToken(f"tok_{secrets.token_hex(8)}", name, _digest(secret), now)
    keys.change(lambda ring: replace(ring, tokens=(*ring.tokens, token)))
    return token, secret


def revoke_token(keys: KeyringStore, token_id: str) -> bool:
    """Returns whether there was such a token."""
    found = any(token.id == token_id for token in keys.read().tokens)
    if found:
        keys.change(lambda ring: replace(ring, tokens=tuple(t for t in ring.tokens if t.id != token_id)))
    return found


def _digest(token: str) -> str:
    """SHA-256: a random token needs no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
