"""Checks passwords, login cookies and API tokens against the keyring. How often a password may be tried:
`login_throttle`, `password_checks`; what a login may do: `access_rules`. An unused login ends after `login_idle_days`
of the configuration."""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import anyio
from anyio import to_thread
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from itsdangerous import BadSignature, Signer

from holdfast.config import LOGIN_IDLE_DAYS
from holdfast.core.errors import (
    InvalidInputError,
    NotAllowedError,
    QuotaExceededError,
    ReauthenticationRequiredError,
    StorageError,
)
from holdfast.ports.clock import Clock
from holdfast.ports.keyring import ApiToken, Keyring, KeyringStore, Login
from holdfast.server.access_rules import Credentials
from holdfast.server.login_links import LoginLinks
from holdfast.server.password_checks import PasswordChecks

log = logging.getLogger("holdfast.http")

COOKIE: Final = "holdfast"
BROWSER_COOKIE: Final = "holdfast-browser"
LOGIN_DAYS: Final = 30  # After which the password must be entered again, however often the login is used
REAUTHENTICATE_AFTER: Final = 300.0  # Seconds after which the most sensitive changes need the password again
MIN_PASSWORD: Final = 8
SERVER_TOKEN: Final = "server"  # The id of the token that commands on this machine use
MAX_TOKENS: Final = 200
_DAY: Final = 24 * 3600.0
_SKEW: Final = 300.0  # Seconds by which the clock of the node that made a login may be ahead of ours
_MAX_LOGINS: Final = 100  # The least recently used one makes room for another
_SAVE_EVERY: Final = 60.0
_POLL: Final = 0.02
_NO_ACCESS: Final[Mapping[str, Any]] = {"logins": (), "tokens": ()}


class Authenticator:
    def __init__(
        self,
        keys: KeyringStore,
        clock: Clock,
        server_token: str | None = None,
        password: str | None = None,
        idle_days: float = LOGIN_IDLE_DAYS,
        root_path: str = "",
    ) -> None:
        """`server_token`: for commands on this machine, valid while the server runs. `password`: configured outside the
        keyring; it takes precedence over the stored one. `idle_days`: after which an unused login ends. `root_path`:
        the path below which browsers see the server."""
        self.keys = keys
        self.clock = clock
        self._server_token = None if server_token is None else _digest(server_token)
        self._hasher = PasswordHasher()
        self._configured = None if password is None else self._hasher.hash(password)
        # argon2 needs 64 MiB and tens of milliseconds by design. Known browsers do not wait for strangers.
        self._hashing = anyio.CapacityLimiter(1)
        self._strangers, self._known = (
            PasswordChecks(partial(self._verify, limiter=anyio.CapacityLimiter(1))) for _ in range(2)
        )
        self._links = LoginLinks()
        self._idle = idle_days * _DAY
        self.root_path = root_path
        self._used: dict[str, float] = {}  # Last use of logins, by id; saved every few minutes

    def _password(self, ring: Keyring) -> str | None:
        return self._configured or ring.password

    def cookie_name(self, name: str = COOKIE, *, secure: bool) -> str:
        """Over HTTPS with the prefix by which browsers refuse such a cookie from an insecure page or, if this is the
        only app on its host, from a subdomain. Below a root path the cookie has that path, so that other apps on the
        host do not receive it."""
        if not secure:
            return name
        return f"__Secure-{name}" if self.root_path else f"__Host-{name}"

    @property
    def password_set(self) -> bool:
        return self._password(self.keys.read()) is not None

    async def authenticate(self, headers: Mapping[str, str], *, secure: bool) -> tuple[bool, Credentials]:
        """Whether a password is set, and the valid credentials of a request. Reads the keyring once."""
        ring, now = self.keys.read(), self.clock.now()
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        secret = (
            bearer if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        )  # as Anthropic's clients send it
        token = self._find_token(ring, secret.strip()) if secret.strip() else None
        cookie = _find_cookie(headers.get("cookie", ""), self.cookie_name(secure=secure))
        login = self._find_login(ring, cookie, now)
        if login is None and self.keys.lag and _is_new(cookie, now):
            ring, login = await self._await_login(cookie)
        if login is not None:
            self._used[login.id] = now
        password_set = self._password(ring) is not None
        recent = (
            not password_set
            or token == SERVER_TOKEN
            or (login is not None and now - login.created_at <= REAUTHENTICATE_AFTER)
        )
        return password_set, Credentials(None if login is None else login.id, token, recent)

    def is_still_valid(self, credentials: Credentials) -> bool:
        """Whether a stream that was opened with these credentials may go on."""
        try:
            ring, now = self.keys.read(), self.clock.now()
        except StorageError:
            return True  # nothing says that the login has ended
        if credentials.token is not None:
            return credentials.token == SERVER_TOKEN or any(token.id == credentials.token for token in ring.tokens)
        if credentials.login is not None:
            return any(login.id == credentials.login for login in self._valid(ring.logins, now))
        return self._password(ring) is None

    def new_login_link(self) -> str:
        """The token of a link that logs in once, within minutes."""
        return self._links.issue(self.clock.now(), self.keys.read().cookie_key)

    def accepts_link(self, token: str) -> bool:
        """Whether it is the token of a login link, which is used by this, or the server's."""
        if self._server_token is not None and hmac.compare_digest(_digest(token), self._server_token):
            return True
        return self._links.redeem(token, self.clock.now(), self.keys.read().cookie_key)

    def end_login_links(self) -> None:
        self._links.end_all()

    def _find_token(self, ring: Keyring, secret: str) -> str | None:
        digest = _digest(secret)
        known = [(token.id, token.sha256) for token in ring.tokens]
        if self._server_token is not None:
            known.append((SERVER_TOKEN, self._server_token))
        found = [tid for tid, sha256 in known if hmac.compare_digest(digest, sha256)]  # compares all: constant time
        return found[0] if found else None

    # ---- logins ----

    def logins(self) -> list[Login]:
        """The valid ones, the most recently used first."""
        valid = self._valid(self.keys.read().logins, self.clock.now())
        found = [replace(login, used_at=self._last_use(login)) for login in valid]
        return sorted(found, key=lambda login: login.used_at, reverse=True)

    async def log_in(self, device: str, address: str, replacing: str | None = None, verified: str | None = None) -> str:
        """Returns the value of the cookie. `replacing`: the id of a login of the same browser, which keeps its id and
        gets a new cookie. `verified`: the hash of the password that was entered; if it is no longer the current one,
        NotAllowedError is raised."""
        now = self.clock.now()
        cookie = f"{int(now)}.{secrets.token_urlsafe(32)}"
        login = Login(replacing or f"login_{secrets.token_hex(8)}", _digest(cookie), device, address, now, now)

        def add(ring: Keyring) -> Keyring:
            if verified is not None and self._password(ring) != verified:
                raise NotAllowedError("log in", "the password has just been changed; try again with the new one")
            others = sorted(self._valid(ring.logins, now), key=lambda other: other.used_at)
            others = [other for other in others if other.id != login.id]
            return replace(ring, logins=(*others[-_MAX_LOGINS + 1 :], login))

        await to_thread.run_sync(self.keys.change, add)
        return cookie

    async def run(self) -> None:
        """Saves when logins were last used, until it is cancelled."""
        while True:
            await anyio.sleep(min(_SAVE_EVERY, self._idle / 10))
            try:
                await self.save_uses()
            except StorageError as error:
                log.warning("the last use of logins could not be saved: %s", error)

    async def save_uses(self) -> None:
        """Also removes logins that have expired, whose devices get no more notifications then. Writes only if there are
        any, or a saved time is too old to judge an idle login by."""
        ring, now = self.keys.read(), self.clock.now()
        saved_often_enough = min(10 * _SAVE_EVERY, self._idle / 10)
        valid = self._valid(ring.logins, now)
        is_saved = all(self._last_use(login) - login.used_at < saved_often_enough for login in valid)
        if is_saved and len(valid) == len(ring.logins):
            return

        def save(ring: Keyring) -> Keyring:
            valid = self._valid(ring.logins, now)
            return replace(ring, logins=tuple(replace(login, used_at=self._last_use(login)) for login in valid))

        ring = await to_thread.run_sync(self.keys.change, save)
        known = {login.id for login in ring.logins}
        self._used = {lid: used for lid, used in self._used.items() if lid in known}

    def _valid(self, logins: Iterable[Login], now: float) -> list[Login]:
        return [
            login
            for login in logins
            if -_SKEW <= now - login.created_at <= LOGIN_DAYS * _DAY and now - self._last_use(login) <= self._idle
        ]

    def _last_use(self, login: Login) -> float:
        return max(login.used_at, self._used.get(login.id, 0.0))

    def _find_login(self, ring: Keyring, cookie: str, now: float) -> Login | None:
        if not cookie:
            return None
        digest = _digest(cookie)
        found = [login for login in ring.logins if hmac.compare_digest(login.sha256, digest)]
        return next(iter(self._valid(found, now)), None)

    async def _await_login(self, cookie: str) -> tuple[Keyring, Login | None]:
        """Another node may have made the login a moment ago, and our copy of the keyring may not have it yet."""
        ring, login = self.keys.read(), None
        for _ in range(int(self.keys.lag / _POLL)):
            await anyio.sleep(_POLL)
            ring = self.keys.read()
            login = self._find_login(ring, cookie, self.clock.now())
            if login is not None:
                break
        return ring, login

    # ---- password ----

    async def check_passwords(self, wait_for_stop: Callable[[], Awaitable[None]]) -> None:
        """Does what `verify_password` waits for, until `wait_for_stop` returns."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._strangers.run, wait_for_stop)
            tasks.start_soon(self._known.run, wait_for_stop)

    async def verify_password(self, password: str, client: str, *, known: bool = False) -> str | None:
        """Waits for its turn. Returns the hash that it was compared with, or None if it is wrong. `known`: whether the
        client has logged in before."""
        return await (self._known if known else self._strangers).check(client, password)

    async def _verify(self, password: str, limiter: anyio.CapacityLimiter) -> str | None:
        hashed = self._password(self.keys.read())
        if hashed is None:
            return None
        return hashed if await to_thread.run_sync(_verify, self._hasher, hashed, password, limiter=limiter) else None

    def new_browser(self) -> str:
        """The value of the cookie by which a browser that has logged in is recognized, until the password changes."""
        return _browser_signer(self.keys.read()).sign(secrets.token_hex(16)).decode()

    def find_browser(self, headers: Mapping[str, str], *, secure: bool) -> str | None:
        """The id of a browser that has logged in before."""
        cookie = _find_cookie(headers.get("cookie", ""), self.cookie_name(BROWSER_COOKIE, secure=secure))
        try:
            return _browser_signer(self.keys.read()).unsign(cookie).decode()
        except BadSignature:
            return None

    async def change_password(self, password: str, verified: str | None) -> str:
        """Ends every login and token, and returns the hash of the new password. `verified`: the hash of the current
        one, None if there is none; if another one has been set meanwhile, NotAllowedError is raised."""
        if self._configured is not None:
            raise NotAllowedError(
                "change the password", "it is set by HOLDFAST_PASSWORD or holdfast.toml; change it there"
            )
        if len(password) < MIN_PASSWORD:
            raise InvalidInputError("new", f"must have at least {MIN_PASSWORD} characters")
        hashed = await to_thread.run_sync(self._hasher.hash, password, limiter=self._hashing)

        def change(ring: Keyring) -> Keyring:
            if ring.password != verified:
                raise NotAllowedError("change the password", "it has just been changed; try again with the new one")
            return _with_password(ring, hashed)

        await to_thread.run_sync(self.keys.change, change)
        return hashed


def set_password(keys: KeyringStore, password: str | None) -> None:
    """Sets or removes the password, and ends every login and token."""
    hashed = None if password is None else PasswordHasher().hash(password)
    keys.change(lambda ring: _with_password(ring, hashed))


def set_first_password(keys: KeyringStore, password: str) -> bool:
    """Sets the password if there is none, and returns whether it did: of several nodes, one does."""
    hashed = PasswordHasher().hash(password)
    return (
        keys.change(lambda ring: ring if ring.password is not None else _with_password(ring, hashed)).password == hashed
    )


def _with_password(ring: Keyring, hashed: str | None) -> Keyring:
    return replace(ring, password=hashed, cookie_key=secrets.token_hex(32), **_NO_ACCESS)


def record_configured_password(keys: KeyringStore, password: str | None) -> None:
    """Ends every login and token if the configured password is not the one of the last start."""
    known, hasher = keys.read().configured_password, PasswordHasher()
    if password is None and known == "":
        return
    if password is not None and known and _verify(hasher, known, password):
        return
    hashed = "" if password is None else hasher.hash(password)
    ended = {} if known is None else {**_NO_ACCESS, "cookie_key": secrets.token_hex(32)}
    keys.change(lambda ring: replace(ring, configured_password=hashed, **ended))


def end_logins(keys: KeyringStore, *ids: str) -> bool:
    """Ends these logins, or all if none is named. Returns whether there was one."""
    found = [login.id for login in keys.read().logins if not ids or login.id in ids]
    if found:
        keys.change(
            lambda ring: replace(ring, logins=tuple(each for each in ring.logins if ids and each.id not in ids))
        )
    return bool(found)


def issue_token(keys: KeyringStore, name: str, now: float, login: str | None = None) -> tuple[ApiToken, str]:
    """`login`: the one that asks for it; if it has just been ended, ReauthenticationRequiredError is raised."""
    secret = f"hf_{secrets.token_urlsafe(32)}"
    token = ApiToken(f"tok_{secrets.token_hex(8)}", name, _digest(secret), now)

    def add(ring: Keyring) -> Keyring:
        if login is not None and all(each.id != login for each in ring.logins):
            raise ReauthenticationRequiredError("create a token")
        if len(ring.tokens) >= MAX_TOKENS:
            raise QuotaExceededError("tokens", MAX_TOKENS, "Revoke one that is no longer used.")
        return replace(ring, tokens=(*ring.tokens, token))

    keys.change(add)
    return token, secret


def revoke_token(keys: KeyringStore, token_id: str) -> bool:
    """Returns whether there was such a token."""
    found = any(token.id == token_id for token in keys.read().tokens)
    if found:
        keys.change(lambda ring: replace(ring, tokens=tuple(t for t in ring.tokens if t.id != token_id)))
    return found


def _browser_signer(ring: Keyring) -> Signer:
    return Signer(ring.cookie_key, salt="browser")


def _find_cookie(header: str, wanted: str) -> str:
    # Not `SimpleCookie`: the time it takes grows with the square of a hostile header's length.
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return next((value for name, _, value in pairs if name == wanted), "")


def _is_new(cookie: str, now: float) -> bool:
    issued = cookie.partition(".")[0]
    return issued.isascii() and issued.isdigit() and len(issued) < 15 and abs(now - int(issued)) <= _SKEW


def _verify(hasher: PasswordHasher, hashed: str, password: str) -> bool:
    try:
        return hasher.verify(hashed, password)
    except (Argon2Error, InvalidHashError):
        return False


def _digest(token: str) -> str:
    """SHA-256: a random token needs no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
