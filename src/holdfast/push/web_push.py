"""Sends messages to push services (RFC 8030). A browser names the address of its push service, so anybody who can use
this server can: messages go to public addresses over HTTPS only, or to the origins that `push_origins` of the
configuration names. The guard: `tools.fetch.ssrf_guard`."""

import hashlib
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
from yarl import URL

from holdfast.core.errors import InvalidInputError
from holdfast.ports.clock import Clock
from holdfast.ports.keyring import KeyringStore, unsaved_use
from holdfast.ports.push import PushResult
from holdfast.ports.store import PushSubscription
from holdfast.push import base64url
from holdfast.push.message_encryption import SALT_SIZE, encrypt, parse_keys
from holdfast.push.vapid import VapidKeys, authorization
from holdfast.tools.fetch.ssrf_guard import Allowed, describe_failure, guarded_session, is_public

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

MAX_ENDPOINT: Final = 2000  # Characters
_SECONDS: Final = 15.0  # For one message
_REASON: Final = 200  # Bytes of a refusal that are shown
_MAX_DELAY: Final = 3600.0


@dataclass(frozen=True, slots=True)
class WebPush:
    """Implements `ports.push.PushService`."""

    keys: KeyringStore
    clock: Clock
    contact: str  # Whom a push service turns to about this server: a mailto: or https: address
    login_idle: float  # Seconds after which an unused login ends
    origins: Collection[str] = ()  # Of push services that need not be on the public internet
    allowed: Allowed = is_public
    resolver: "AbstractResolver | None" = None  # None: the system's name service
    seconds: float = _SECONDS

    async def public_key(self) -> str:
        return await VapidKeys(self.keys).public_key()

    def check(self, endpoint: str, p256dh: str, auth: str) -> None:
        self._check_endpoint(endpoint)
        try:
            parse_keys(p256dh, auth)
        except ValueError as error:
            raise InvalidInputError("keys", f"is not valid: {error}") from None

    def _check_endpoint(self, endpoint: str) -> URL:
        try:
            url = URL(endpoint)
            origin = str(url.origin())
        except ValueError:
            raise InvalidInputError("endpoint", "is not a URL") from None
        if len(endpoint) > MAX_ENDPOINT or not url.host or url.user is not None or url.password is not None:
            raise InvalidInputError("endpoint", "is not the address of a push service")
        if url.scheme != "https" and origin not in self.origins:
            raise InvalidInputError("endpoint", "must begin with https:, unless push_origins names its origin")
        return url

    def accepts_credential(self, credential: str) -> bool:
        ring, now = self.keys.read(), self.clock.now()
        idle = self.login_idle + unsaved_use(self.login_idle)
        valid = {login.id for login in ring.logins if login.is_valid(now, idle)}
        return credential in valid | {token.id for token in ring.tokens}

    async def send(self, subscription: PushSubscription, payload: bytes, *, tag: str, ttl: float) -> PushResult:
        try:
            with anyio.fail_after(self.seconds):
                return await self._send(subscription, payload, tag, ttl)
        except TimeoutError:
            return PushResult("retry", f"The push service did not answer within {self.seconds:g} seconds.")
        except InvalidInputError as error:  # the configuration has changed since
            return PushResult("refused", str(error))
        except Exception as error:  # noqa: BLE001 - the boundary to a service of somebody else
            return PushResult("retry", f"The push service was not reached: {describe_failure(error)}"[:_REASON])

    async def _send(self, subscription: PushSubscription, payload: bytes, tag: str, ttl: float) -> PushResult:
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

        url = self._check_endpoint(subscription.endpoint)
        origin = str(url.origin())
        key, once = await VapidKeys(self.keys).private_key(), generate_private_key(SECP256R1())
        headers = {
            "Authorization": authorization(key, origin, self.contact, self.clock.now()),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(max(0, int(ttl))),
            "Topic": _topic(tag),
            "Urgency": "high",
        }
        body = encrypt(payload, subscription.p256dh, subscription.auth, salt=os.urandom(SALT_SIZE), key=once)
        allowed = (lambda _: True) if origin in self.origins else self.allowed
        async with (
            guarded_session(allowed, self.resolver) as session,
            session.post(url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            return await _result(response)


def _topic(tag: str) -> str:
    """At most 32 characters of base64url."""
    return base64url.encode(hashlib.sha256(tag.encode()).digest()[:24])


async def _result(response: "aiohttp.ClientResponse") -> PushResult:
    status = response.status
    if 200 <= status < 300:
        return PushResult("sent")
    text = (await response.content.read(_REASON)).decode("utf-8", "replace")
    detail = re.sub(r"[^\x20-\x7e]+", " ", text).strip()
    reason = f"The push service answered {status}" + (f": {detail}" if detail else ".")
    if status in (404, 410):
        return PushResult("gone", reason)
    if status == 429 or status >= 500:
        return PushResult("retry", reason, _retry_after(response.headers.get("Retry-After", "")))
    return PushResult("refused", reason)


def _retry_after(header: str) -> float | None:
    return min(float(header), _MAX_DELAY) if re.fullmatch(r"[0-9]{1,9}", header.strip()) else None
