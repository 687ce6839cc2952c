"""The key by which push services recognize this server (VAPID, RFC 8292). Browsers subscribe with its public part, so a
push service accepts messages to them from nobody else. It is in the keyring, one for all nodes."""

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from holdfast.ports.keyring import Keyring, KeyringStore
from holdfast.push import base64url
from holdfast.push.message_encryption import public_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

NAME: Final = "push:vapid"
"""In the keyring, beside the keys of providers, which nodes of earlier versions keep when they change the keyring."""
_VALID: Final = 12 * 3600  # Seconds that a token is valid; at most a day is allowed


@dataclass(frozen=True, slots=True)
class VapidKeys:
    keys: KeyringStore

    async def private_key(self) -> "EllipticCurvePrivateKey":
        """It is created when it is first asked for."""
        stored = self.keys.read().provider_keys.get(NAME)
        if stored is None:
            stored = await to_thread.run_sync(self._create)
        return _load(stored)

    async def public_key(self) -> str:
        return base64url.encode(public_bytes(await self.private_key()))

    def _create(self) -> str:
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

        number = generate_private_key(SECP256R1()).private_numbers().private_value
        fresh = base64url.encode(number.to_bytes(32))

        def add(ring: Keyring) -> Keyring:
            """Unless another node was faster."""
            return replace(ring, provider_keys={NAME: fresh, **ring.provider_keys})

        return self.keys.change(add).provider_keys[NAME]


def _load(stored: str) -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

    return derive_private_key(int.from_bytes(base64url.decode(stored)), SECP256R1())


def authorization(key: "EllipticCurvePrivateKey", audience: str, contact: str, now: float) -> str:
    """The `Authorization` header of a message to the push service with the origin `audience`."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    claims = {"aud": audience, "exp": int(now) + _VALID, "sub": contact}
    parts = [{"typ": "JWT", "alg": "ES256"}, claims]
    signed = ".".join(base64url.encode(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
    r, s = decode_dss_signature(key.sign(signed.encode(), ECDSA(SHA256())))
    token = f"{signed}.{base64url.encode(r.to_bytes(32) + s.to_bytes(32))}"
    return f"vapid t={token}, k={base64url.encode(public_bytes(key))}"
