"""Passwords, cookies and tokens: what a caller shows, checked against the keyring."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final

import anyio
from anyio import to_thread
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from itsdangerous import BadSignature, TimestampSigner

from holdfast.core.errors import Invalid, NotAllowed
from holdfast.core.values import replace
from holdfast.faces.http.access import Credentials
from holdfast.ports import Clock, Keyring, Keys, Token

COOKIE: Final = "holdfast"
COOKIE_DAYS: Final = 30
_SKEW: Final = 300.0
"""Seconds by which the clock of the node that gave a cookie may be ahead of ours."""
MIN_PASSWORD: Final = 8


class _Signer(TimestampSigner):
    def __init__(self, key: str, salt: str, clock: Clock) -> None:
        super().__init__(key, salt=salt)
        self._clock = clock

    def get_timestamp(self) -> int:
        return int(self._clock.now())


class Gate:
    def __init__(self, keys: Keys, clock: Clock, server_token: str | None = None, password: str | None = None) -> None:
        """`server_token`: for commands on this machine, good while the server lives. `password`: one that is set from
        outside and goes before the stored one."""
        self._keys = keys
        self._clock = clock
        self._server_token = None if server_token is None else _digest(server_token)
        self._hasher = PasswordHasher()
        self._outside = None if password is None else self._hasher.hash(password)
        self._mark = None if password is None else _digest(password)
        self._verifying = anyio.CapacityLimiter(1)  # a check costs 64 MiB and tens of milliseconds, on purpose

    @property
    def _password(self) -> str | None:
        return self._outside or self._keys.read().password

    @property
    def password_set(self) -> bool:
        return self._password is not None

    def check(self, headers: Mapping[str, str]) -> Credentials:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        known = scheme.lower() == "bearer" and self._knows(token.strip())
        return Credentials(cookie="cookie" in headers and self._is_signed(headers["cookie"]), token=known)

    def _knows(self, token: str) -> bool:
        shown = _digest(token)
        wanted = [item.sha256 for item in self._keys.read().tokens]
        if self._server_token is not None:
            wanted.append(self._server_token)
        return sum(hmac.compare_digest(shown, digest) for digest in wanted) > 0  # all: time must not tell which

    # ---- cookies ----

    def _signer(self) -> _Signer:
        """Bound to the password: a new one ends every login. One from outside is bound by its digest, which is the same
        on every node; its hash is not."""
        return _Signer(self._keys.read().cookie_key, f"login {self._mark or self._password}", self._clock)

    def cookie(self) -> str:
        return self._signer().sign(secrets.token_hex(16)).decode()

    def _is_signed(self, header: str) -> bool:
        try:
            morsel = SimpleCookie(header).get(COOKIE)
        except CookieError:
            return False
        if morsel is None or not self.password_set:
            return False
        try:
            _, given = self._signer().unsign(morsel.value, return_timestamp=True)
        except BadSignature:
            return False
        # Not the signer's own check of age, to which a cookie of a node that is a second ahead is a forgery.
        return -_SKEW <= self._clock.now() - given.timestamp() <= COOKIE_DAYS * 24 * 3600

    # ---- the password ----

    async def is_password(self, password: str) -> bool:
        wanted = self._password
        return wanted is not None and await to_thread.run_sync(self._verify, wanted, password, limiter=self._verifying)

    async def change_password(self, password: str) -> None:
        """Ends every login."""
        if self._outside is not None:
            raise NotAllowed("change the password", "it is set from outside, by HOLDFAST_PASSWORD or holdfast.toml")
        if len(password) < MIN_PASSWORD:
            raise Invalid("new", f"is too short; a password has at least {MIN_PASSWORD} characters")
        await to_thread.run_sync(set_password, self._keys, password, limiter=self._verifying)

    def _verify(self, wanted: str, password: str) -> bool:
        try:
            return self._hasher.verify(wanted, password)
        except (Argon2Error, InvalidHashError):
            return False

    # ---- tokens ----

    def tokens(self) -> tuple[Token, ...]:
        return self._keys.read().tokens

    def issue(self, name: str) -> tuple[Token, str]:
        return issue_token(self._keys, name, self._clock.now())

    def revoke(self, token_id: str) -> bool:
        return revoke_token(self._keys, token_id)


def hash_password(password: str) -> str:
    return PasswordHasher().hash(password)


def set_password(keys: Keys, password: str | None) -> None:
    """Ends every login, and so does taking the password away."""
    hashed = None if password is None else hash_password(password)
    keys.change(lambda ring: replace(ring, password=hashed, cookie_key=secrets.token_hex(32)))


def issue_token(keys: Keys, name: str, now: float) -> tuple[Token, str]:
    secret = f"hf_{secrets.token_urlsafe(32)}"
    token = Token(f"tok_{secrets.token_hex(8)}", name, _digest(secret), now)
    keys.change(lambda ring: replace(ring, tokens=(*ring.tokens, token)))
    return token, secret


def revoke_token(keys: Keys, token_id: str) -> bool:
    found = any(token.id == token_id for token in keys.read().tokens)

    def without(ring: Keyring) -> Keyring:
        return replace(ring, tokens=tuple(token for token in ring.tokens if token.id != token_id))

    if found:
        keys.change(without)
    return found


def _digest(token: str) -> str:
    """A random token needs no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
