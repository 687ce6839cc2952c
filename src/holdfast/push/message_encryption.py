"""Encrypts messages to a browser (RFC 8291, with the encoding of RFC 8188): only the browser can read them, and not its
push service. Pure: the caller brings the salt and the key pair, which must be new for every message."""

import struct
from typing import TYPE_CHECKING, Final

from holdfast.push import base64url

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

SALT_SIZE: Final = 16
BLOCK: Final = 1024  # Messages are padded to a multiple of so many bytes, which hides how long a title is
MAX_PLAINTEXT: Final = 3993  # Push services need not accept more
_SECRET_SIZE: Final = 16
_RECORD_SIZE: Final = 4096
_END_OF_MESSAGE: Final = b"\x02"


def encrypt(
    plaintext: bytes, p256dh: str, auth: str, *, salt: bytes, key: "EllipticCurvePrivateKey", block: int = BLOCK
) -> bytes:
    """`p256dh` and `auth` are the browser's, as base64url. ValueError: they are not valid, or the text is too long."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDH
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(plaintext) > MAX_PLAINTEXT:
        raise ValueError(f"a message may have {MAX_PLAINTEXT} bytes")
    theirs, secret = parse_keys(p256dh, auth)
    ours = public_bytes(key)
    shared = key.exchange(ECDH(), theirs)
    input_key = _derive(shared, secret, b"WebPush: info\0" + base64url.decode(p256dh) + ours, 32)
    content_key = _derive(input_key, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(input_key, salt, b"Content-Encoding: nonce\0", 12)
    length = min(-(-(len(plaintext) + 1) // block) * block, MAX_PLAINTEXT + 1)
    padded = (plaintext + _END_OF_MESSAGE).ljust(length, b"\0")
    header = salt + struct.pack("!IB", _RECORD_SIZE, len(ours)) + ours
    return header + AESGCM(content_key).encrypt(nonce, padded, None)


def parse_keys(p256dh: str, auth: str) -> "tuple[EllipticCurvePublicKey, bytes]":
    """A browser's public key and secret. ValueError: they are none."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

    secret = base64url.decode(auth)
    if len(secret) != _SECRET_SIZE:
        raise ValueError(f"the secret must have {_SECRET_SIZE} bytes")
    return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), base64url.decode(p256dh)), secret


def public_bytes(key: "EllipticCurvePrivateKey") -> bytes:
    """The public key as an uncompressed point."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), length, salt, info).derive(secret)
