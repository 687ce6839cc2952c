"""A push service for tests: an HTTP server that does for its browsers what a browser does, and decrypts what it gets as
RFC 8291 says. It shares no code with the package."""

import base64
import hashlib
import hmac
import json
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

GUARD: Final = 30.0


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    text: bytes  # Decrypted

    @property
    def content(self) -> Any:
        return json.loads(self.text.decode())


@dataclass
class Browser:
    """The keys of one subscription."""

    name: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    secret: bytes = b"0123456789abcdef"

    def keys(self) -> dict[str, str]:
        return {"p256dh": encode(point(self.key.public_key())), "auth": encode(self.secret)}

    def decrypt(self, body: bytes) -> bytes:
        """Without HKDF of a library: RFC 5869 for one block is two HMACs."""
        salt, (size, length) = body[:16], struct.unpack("!IB", body[16:21])
        theirs, sealed = body[21 : 21 + length], body[21 + length :]
        assert len(sealed) <= size
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs))
        info = b"WebPush: info\0" + point(self.key.public_key()) + theirs
        secret = _hkdf(self.secret, shared, info, 32)
        key = _hkdf(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _hkdf(salt, secret, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert padded.endswith(b"\x02")
        return padded[:-1]


def _hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    extracted = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()[:length]


def verify_authorization(header: str, audience: str) -> tuple[str, dict[str, Any]]:
    """The key and the claims of a VAPID header (RFC 8292) whose signature is right."""
    scheme, _, rest = header.partition(" ")
    fields = dict(each.strip().split("=", 1) for each in rest.split(","))
    signed, _, signature = fields["t"].rpartition(".")
    raw = decode(signature)
    assert (scheme, len(raw)) == ("vapid", 64)
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode(fields["k"]))
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    key.verify(der, signed.encode(), ec.ECDSA(SHA256()))
    head, claims = (json.loads(decode(part)) for part in signed.split("."))
    assert head == {"typ": "JWT", "alg": "ES256"}
    assert claims["aud"] == audience
    return fields["k"], claims


class PushServiceServer:
    """`answers`: status, headers and body of the next messages; 201 afterwards."""

    def __init__(self) -> None:
        self.browsers: dict[str, Browser] = {}
        self.received: list[Received] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self._news = threading.Condition()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, text = service.take(self.path, dict(self.headers), body)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> "Iterator[PushServiceServer]":
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def subscribe(self, name: str = "phone") -> dict[str, Any]:
        """What the browser hands to the server: its `PushSubscription` as JSON."""
        browser = self.browsers[name] = Browser(name)
        return {"endpoint": f"{self.origin}/push/{name}", "keys": browser.keys()}

    def take(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        browser = self.browsers[path.rpartition("/")[2]]
        with self._news:
            self.received.append(Received(path, headers, body, browser.decrypt(body)))
            self._news.notify_all()
            return self.answers.pop(0) if self.answers else (201, {}, b"")

    def wait(self, count: int) -> list[Received]:
        """Until so many messages were received."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.received) >= count, GUARD), self.received
            return list(self.received)
