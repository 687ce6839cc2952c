"""Who may come in. Pure: the middleware gathers the facts of a request, this decides.

Without a password the server is open to the person at the machine and to nobody else. What keeps others out then is
that a web page elsewhere can neither name us (`Host`), nor come through a proxy, nor send what we take without its
origin showing. With a password everybody shows a cookie or a token, and only cookies can be abused by other pages.
"""

import ipaddress
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from holdfast.core.values import dataclass

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
PROXY_HEADERS: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
LINES: Final = "application/x-ndjson"
OWN_BODIES: Final = {"/api/files": "multipart/form-data", "/api/import": LINES}
"""Calls whose body is no JSON, with its type. They have limits of their own."""
OPEN_PATHS: Final = frozenset({"/login", "/api/login", "/healthz", "/readyz"})
"""What is answered to anybody: without it nobody could log in, and a supervisor could not see that we live."""


@dataclass(frozen=True, slots=True)
class Facts:
    method: str
    path: str
    headers: Mapping[str, str]
    """Lower-case names; of a repeated header all values, joined by commas."""
    has_body: bool = False


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the caller has shown, already checked."""

    cookie: bool = False
    token: bool = False


@dataclass(frozen=True, slots=True)
class Denied:
    status: Literal[400, 401, 403, 415, 421]
    code: str
    detail: str


def judge(facts: Facts, *, password_set: bool, shown: Credentials) -> Denied | None:
    if not password_set:
        return _at_the_machine(facts) or _form(facts) or _foreign(facts)
    if shown.token:  # a page elsewhere cannot send it
        return None
    denied = _form(facts) or _foreign(facts)
    if denied is not None:
        return denied
    if shown.cookie or facts.path in OPEN_PATHS or facts.path.startswith("/static/"):
        return None
    return Denied(
        401, "unauthorized", "This server has a password. Log in, or send a token in the Authorization header."
    )


def is_loopback(host: str) -> bool:
    """Whether a name can only mean this machine, whatever DNS says."""
    host = host.rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _at_the_machine(facts: Facts) -> Denied | None:
    host = host_name(facts.headers.get("host", ""))
    if host is None or not is_loopback(host):
        return Denied(
            421,
            "wrong-host",
            "Without a password this server answers only to localhost. Open it as http://localhost, or set a password "
            "with `holdfast password`.",
        )
    proxied = next((name for name in facts.headers if name in PROXY_HEADERS or name.startswith("x-forwarded-")), None)
    if proxied is not None:
        return Denied(
            403,
            "proxied",
            f"The request came through a proxy (header {proxied}). A server behind a proxy needs a password: set one "
            "with `holdfast password`.",
        )
    return None


def _form(facts: Facts) -> Denied | None:
    """What a page elsewhere can send without being asked first has one of three types, and none is JSON."""
    if facts.method in SAFE:
        return None
    kind = facts.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/json", OWN_BODIES.get(facts.path)):
        return None
    if not facts.has_body and not kind:
        return None
    return Denied(415, "unsupported-type", f"Send the body as application/json, not as {kind or 'an unnamed type'}.")


def _foreign(facts: Facts) -> Denied | None:
    """Browsers say where a request comes from. Who says nothing is no browser."""
    if facts.method in SAFE:
        return None
    denied = Denied(403, "cross-site", "The request comes from another site, which may not change anything here.")
    if facts.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return denied
    origin = facts.headers.get("origin")
    if origin is not None and not _same_origin(origin, facts):
        return denied
    return None


def _same_origin(origin: str, facts: Facts) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    hosts = {facts.headers.get("host", ""), facts.headers.get("x-forwarded-host", "")} - {""}
    return parts.scheme in ("http", "https") and parts.netloc.lower() in {host.lower() for host in hosts}


def host_name(header: str) -> str | None:
    """The name in a `Host` header, without its port; None if it is no such header."""
    if not header or any(c in header for c in "/\\@,? \t#"):
        return None
    if header.startswith("["):
        name, bracket, rest = header[1:].partition("]")
        return name if bracket and (not rest or _is_port(rest)) else None
    name, colon, port = header.partition(":")
    return name if not colon or _is_port(":" + port) else None


def _is_port(text: str) -> bool:
    return text.startswith(":") and text[1:].isascii() and text[1:].isdigit() and len(text) <= 6
