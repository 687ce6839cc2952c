"""Decides which requests are allowed, which need no login, and when a server needs a password (`needs_password`, which
`app.lifecycle` asks at the start). Pure: `access_middleware` collects the facts.

Without a password only the user account that runs the server has access, on this machine; others need the link with the
server's token. A page of another site cannot get in: its requests have another `Host`, come through a proxy, or carry a
foreign `Origin` or `Sec-Fetch-Site`. With a password every request needs a cookie or a token; a browser attaches only
the cookie by itself, so only cookie requests are checked for their origin. Below `/v1`, `cors_middleware` accepts the
foreign origins that are configured before these rules apply.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from holdfast.core.loopback import is_loopback

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
PROXY_HEADERS: Final = ("forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip")
NDJSON: Final = "application/x-ndjson"
OCTETS: Final = "application/octet-stream"
_NON_JSON_BODIES: Final = {"/api/files": "multipart/form-data", "/api/import": NDJSON, "/api/import/file": OCTETS}
_UPLOAD: Final = re.compile(r"/api/sessions/[^/]+/workspace/upload")
CREDENTIALS: Final = "holdfast.credentials"
"""Key in the ASGI scope under which routes find the `Credentials`."""
PEER_USER: Final = "holdfast.peer_user"
"""Key in the ASGI extensions of an async function that finds the user account at the other end of the connection
(`server.peer_user`)."""
_API: Final = ("/api/", "/v1/")
_SHOWN: Final = 200  # Characters of a header that an error repeats
PATHS_WITHOUT_LOGIN: Final = frozenset({"/login", "/api/login", "/open", "/healthz", "/readyz"})
"""Login itself, the link with the server's token, and health checks. `/static/` needs no login either."""
SHARES: Final = "/share/"
"""What a share link begins with; the token follows. Reading needs no login: the token is what gives access."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    method: str
    path: str
    headers: Mapping[str, str]  # By lowercase name; the values of a repeated header are joined by commas
    has_body: bool = False
    peer: str | None = None  # The address that the connection comes from; None for a Unix socket
    same_user: bool = True  # Whether the connection comes from the account that runs the server
    query: str = ""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The valid credentials of a request: ids of the login whose cookie it has, and of the token."""

    login: str | None = None
    token: str | None = None
    recent: bool = False  # Whether the password was entered a short while ago, or cannot be asked for


@dataclass(frozen=True, slots=True)
class AccessDenied:
    status: Literal[400, 401, 403, 415, 421, 503]
    code: str
    detail: str


def needs_password(host: str, *, required: bool = False) -> bool:
    """Whether a server that listens on `host` serves nobody without a password: other machines can reach that address,
    or the setting `require_password` is on (`required`)."""
    return required or not is_loopback(host)


def other_body_type(path: str) -> str | None:
    """The media type of the body, if it is not JSON. Such a path has a size limit of its own."""
    return OCTETS if _UPLOAD.fullmatch(path) else _NON_JSON_BODIES.get(path)


def decide_access(
    facts: RequestFacts, *, password_set: bool, password_needed: bool, credentials: Credentials
) -> AccessDenied | None:
    """`password_needed`: the answer of `needs_password`."""
    if not password_set and password_needed:
        return AccessDenied(
            503,
            "no-password",
            "This server is reachable from other machines, but no password is set. Set one with `holdfast password`.",
        )
    if not password_set:
        return _check_local(facts, credentials) or _check_content_type(facts) or _check_origin(facts)
    if credentials.token:  # a page of another site cannot send it
        return None
    denied = _check_content_type(facts) or _check_origin(facts)
    if denied is not None:
        return denied
    if credentials.login or _needs_no_login(facts) or facts.path.startswith("/static/"):
        return None
    return AccessDenied(
        401,
        "unauthorized",
        "This server has a password. Log in, or send a token in the Authorization or x-api-key header.",
    )


def loggable_path(path: str) -> str:
    """The path as it may be logged: the token of a share link is a secret, also in an address that was put together
    wrongly."""
    before, found, _ = path.partition(SHARES)
    return f"{before}{SHARES}…" if found else path


def _needs_no_login(facts: RequestFacts) -> bool:
    is_share = facts.method in ("GET", "HEAD") and facts.path.startswith(SHARES)
    return is_share or facts.path in PATHS_WITHOUT_LOGIN


def is_https(headers: Mapping[str, str]) -> bool:
    """Whether the browser's connection is encrypted, which only a proxy in front of this server can do: it says so in
    `X-Forwarded-Proto`."""
    return headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower() == "https"


def opens_page(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a person opens the address in a browser, and is to be shown a page in place of an error's JSON."""
    return method == "GET" and "text/html" in headers.get("accept", "")


def _check_local(facts: RequestFacts, credentials: Credentials) -> AccessDenied | None:
    header = facts.headers.get("host", "")
    host = host_name(header)
    if host is None or not is_loopback(host):
        return AccessDenied(
            421,
            "wrong-host",
            f"Without a password this server only answers requests to localhost; this one has Host: {header[:_SHOWN]}. "
            "Use a localhost address, or set a password with `holdfast password`.",
        )
    if facts.peer is not None and not is_loopback(facts.peer):
        return AccessDenied(
            403, "not-local", "Without a password this server only accepts requests from this machine. Set a password."
        )
    proxied = next((name for name in facts.headers if name in PROXY_HEADERS or name.startswith("x-forwarded")), None)
    if proxied is not None:
        return AccessDenied(
            403,
            "proxied",
            f"The request came through a proxy (header {proxied}). A server behind a proxy needs a password: set one "
            "with `holdfast password`.",
        )
    known = facts.same_user or credentials.token or credentials.login
    if not known and not _needs_no_login(facts):
        return AccessDenied(
            403,
            "another-user",
            "Without a password this server only answers the user account that started it. It does not answer programs "
            "that it runs itself, or a connection whose user account cannot be found, such as one through an SSH "
            "tunnel. Use that account and the address printed at the start, send a token, or set a password with "
            "`holdfast password`.",
        )
    return None


def _check_content_type(facts: RequestFacts) -> AccessDenied | None:
    """Requires JSON: a page of another site can send three other media types without asking (by a CORS preflight), but
    not JSON."""
    if facts.method in SAFE_METHODS:
        return None
    kind = facts.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/json", other_body_type(facts.path)):
        return None
    if not facts.has_body and not kind:
        return None
    return AccessDenied(
        415, "unsupported-type", f"Send the body as application/json, not as {kind or 'an unspecified type'}."
    )


def _check_origin(facts: RequestFacts) -> AccessDenied | None:
    """Browsers always send `Origin` or `Sec-Fetch-Site` with requests that change something; a client without them is
    not a browser."""
    foreign = facts.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    if facts.method in SAFE_METHODS:
        return _check_foreign_read(facts) if foreign else None
    if foreign:
        return AccessDenied(403, "cross-site", "Requests from other sites may not change anything on this server.")
    origin = facts.headers.get("origin")
    if origin is None or _same_origin(origin, facts):
        return None
    host = facts.headers.get("host", "")[:_SHOWN] or "no host"
    return AccessDenied(
        403,
        "cross-site",
        f"The request comes from a page of {origin[:_SHOWN]} (header Origin), but is addressed to "
        f"{host} (header Host). Other sites may not change anything here. "
        "If both are this server behind a reverse proxy, let the proxy pass on the browser's Host header: "
        "proxy_set_header Host $http_host; in nginx.",
    )


def _check_foreign_read(facts: RequestFacts) -> AccessDenied | None:
    """A page of another site cannot read the response, but could measure how long a search takes. A link that a person
    opens is answered, in a page of its own: neither in a frame nor before it is clicked. A preflight is answered, and
    grants nothing."""
    if facts.method == "OPTIONS" or not facts.path.startswith(_API):
        return None
    opened = (
        facts.headers.get("sec-fetch-mode") == "navigate"
        and facts.headers.get("sec-fetch-dest", "document") == "document"
        and not {"sec-purpose", "purpose"} & facts.headers.keys()
    )
    return None if opened else AccessDenied(403, "cross-site", "Pages of other sites may not use the API.")


def _same_origin(origin: str, facts: RequestFacts) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    hosts = {facts.headers.get("host", ""), facts.headers.get("x-forwarded-host", "")} - {""}
    return parts.scheme in ("http", "https") and parts.netloc.lower() in {host.lower() for host in hosts}


def host_name(header: str) -> str | None:
    """The name in a `Host` header without the port; None if the header is malformed."""
    if not header or any(c in header for c in "/\\@,? \t#"):
        return None
    if header.startswith("["):
        name, bracket, rest = header[1:].partition("]")
        return name if bracket and (not rest or _is_port(rest)) else None
    name, colon, port = header.partition(":")
    return name if not colon or _is_port(":" + port) else None


def _is_port(text: str) -> bool:
    return text.startswith(":") and text[1:].isascii() and text[1:].isdigit() and len(text) <= 6
