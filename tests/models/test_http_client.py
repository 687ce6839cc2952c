"""The HTTP client on its own: connecting, TLS, proxies, keep-alive, limits and hostile servers."""

import asyncio
import gzip
import ipaddress
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from yarl import URL

from holdfast.models import http_connection
from holdfast.models.http_client import HttpClient, proxy_for
from holdfast.models.http_connection import HttpError, HttpResponse
from tests.upstream import GUARD, Chunk, Close, End, Forever, Hang, Head, Raw, Script, answers, upstream

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]),
]
PACKED = {"Content-Encoding": "gzip"}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def http(**options: object) -> AsyncIterator[HttpClient]:
    client = HttpClient(**options)  # type: ignore[arg-type]
    try:
        yield client
    finally:
        await client.aclose()


async def read_all(response: HttpResponse) -> bytes:
    data = b""
    with anyio.fail_after(GUARD):
        while piece := await response.read():
            data += piece
    return data


async def get(client: HttpClient, url: str, **headers: str) -> bytes:
    with anyio.fail_after(GUARD):
        return await read_all(await client.request("GET", URL(url), headers))


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[int]:
    """A server that runs `handler` for each connection; yields its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(handle, host, 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]


async def answer_ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)


# ---- responses ----

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("script", "body"),
    [
        ([Raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK)], b"ok"),
        ([Raw(b"HTTP/1.0 200 OK\r\n\r\nto the end"), Close()], b"to the end"),
        ([Raw(b"HTTP/1.1 204 No Content\r\n\r\n")], b""),
        ([Raw(CHUNKED + b"2;ext=1\r\nok\r\n0\r\nTrailer: x\r\n\r\n")], b"ok"),
        ([Raw(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok")], b"ok"),
        ([*[Raw(OK[n : n + 1]) for n in range(len(OK))]], b"ok"),
        ([Head(200, PACKED), Chunk(gzip.compress(b"packed")), End()], b"packed"),
        ([Head(200, PACKED), *[Chunk(bytes([byte])) for byte in gzip.compress(b"packed")], End()], b"packed"),
        ([Head(200, PACKED), Chunk(gzip.compress(b"packed") + b"rest"), Chunk(b"more"), End()], b"packed"),
    ],
    ids=["interim", "until closed", "no content", "trailer", "bare LF", "byte by byte", "gzip", "gzip bytes", "rest"],
)
async def test_every_framing_is_read(script: Script, body: bytes) -> None:
    """A body ends by length, by chunks or with the connection; interim responses are skipped."""
    async with upstream(script) as up, http() as client:
        assert await get(client, up.url) == body


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ([Raw(b"HTTP/1.1 200 OK\r\nX: "), Forever(Raw(b"x" * 4096))], "protocol", "headers are larger"),
        ([Raw(CHUNKED + b"2\r\nok\r\n0\r\nX: "), Forever(Raw(b"x" * 4096))], "protocol", "headers are larger"),
        ([Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"), Close()], "unavailable", "broke"),
        ([Raw(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")], "protocol", "not valid HTTP"),
        ([Raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n!")], "protocol", "valid"),
        ([Raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n")], "protocol", "br"),
        ([Head(200, PACKED), Chunk(gzip.compress(b"packed")[:8] + b"?" * 100)], "protocol", "cannot be decoded"),
        ([Raw(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1_001 + b"\r\n")], "protocol", "more than 1,000 headers"),
    ],
    ids=["endless header", "endless trailer", "short body", "bad length", "upgrade", "brotli", "no gzip", "headers"],
)
async def test_a_hostile_server_cannot_exhaust_the_client(script: Script, code: str, words: str) -> None:
    """E1: what is endless, cut off or invalid is an error with a reason, and the connection is closed."""
    async with upstream([*script, Hang()]) as up, http() as client:
        with pytest.raises(HttpError, match=words) as caught:
            await get(client, up.url)
        assert caught.value.error.code == code
        await up.closed()


async def test_a_compressed_body_is_inflated_as_it_is_read() -> None:
    """L6: a few bytes that expand to many are read in small pieces, between which everything else runs."""
    size, pieces, turns = 30_000_000, list[int](), 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    script: Script = [Head(200, PACKED), Chunk(gzip.compress(b"\0" * size)), End()]
    async with upstream(script) as up, http() as client, anyio.create_task_group() as tasks:
        response = await client.request("GET", URL(up.url), {})
        tasks.start_soon(count_turns)
        while piece := await response.read():
            pieces.append(len(piece))
            if len(pieces) == 1:
                turns = 0
        tasks.cancel_scope.cancel()
    assert sum(pieces) == size
    assert max(pieces) <= http_connection.MAX_INFLATED
    assert turns >= len(pieces) - 1


async def test_all_that_has_arrived_of_a_compressed_body_is_read() -> None:
    """X1: zlib may keep some of what it has decoded, which is not left there until more arrives."""
    packer = zlib.compressobj(9)
    packed = (packer.compress(b"\0" * (http_connection.MAX_INFLATED + 760)) + packer.flush(zlib.Z_SYNC_FLUSH))[:-5]
    size = len(zlib.decompressobj().decompress(packed))
    script: Script = [Head(200, {"Content-Encoding": "deflate"}), Chunk(packed), Hang()]
    async with upstream(script) as up, http() as client:
        response = await client.request("GET", URL(up.url), {})
        with anyio.fail_after(GUARD):
            while size > 0:
                size -= len(await response.read())
        response.abort()


async def test_a_compressed_body_that_expands_is_not_read_ahead() -> None:
    """Back-pressure: while it is inflated, the compressed rest stays within the limit."""
    packer = zlib.compressobj(9)
    endless = Chunk(packer.compress(b"\0" * 60_000_000) + packer.flush(zlib.Z_SYNC_FLUSH))
    async with upstream([Head(200, {"Content-Encoding": "deflate"}), Forever(endless)]) as up, http() as client:
        response = await client.request("GET", URL(up.url), {})
        for _ in range(50):
            assert len(await response.read()) <= http_connection.MAX_INFLATED
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert response._size < 4 * http_connection.HIGH_WATER
        response.abort()
        await up.closed()


async def test_a_body_that_is_not_read_stops_the_server() -> None:
    """Back-pressure: an endless body is buffered up to a limit, then the socket is not read any more."""
    async with upstream([Head(), Forever(Chunk(b"x" * 65536))]) as up, http() as client:
        response = await client.request("GET", URL(up.url), {})
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert len(await response.read()) < 4 * http_connection.HIGH_WATER
        assert await response.read()  # reading has been resumed
        response.abort()
        await up.closed()


@pytest.mark.parametrize("script", [[Hang()], [Head(), Hang()]], ids=["head", "body"])
async def test_cancel_closes_the_socket(script: Script) -> None:
    """C7: whoever waits for a head or for a body is cancelled in mid-await, and the server sees it."""

    async def ask() -> None:
        response = await client.request("GET", URL(up.url), {})
        try:
            await response.read()
        finally:
            response.abort()

    async with upstream(script) as up, http() as client:
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await up.asked()
            await anyio.wait_all_tasks_blocked()
            cancelled_at = anyio.current_time()
            group.cancel_scope.cancel()
        exchange = await up.closed()
        assert exchange.closed_at is not None
        assert exchange.closed_at - cancelled_at < GUARD / 2


# ---- keep-alive ----


async def test_a_connection_is_reused_until_the_server_says_close() -> None:
    """Requests to one server share a connection; `Connection: close` ends it."""
    last = answers(200, b"ok", Connection="close")
    async with upstream(answers(200, b"ok"), last, answers(200, b"ok")) as up, http() as client:
        for _ in range(3):
            assert await get(client, up.url) == b"ok"
        assert up.connections == 2


async def test_a_stale_connection_is_replaced() -> None:
    """A server that closed an idle connection, or closes it in place of an answer, is asked again on a new one."""
    async with upstream(answers(200, b"1"), [Close()], answers(200, b"2")) as up, http() as client:
        assert await get(client, up.url) == b"1"
        assert await get(client, up.url) == b"2"
        assert (up.connections, len(up.exchanges)) == (2, 3)


async def test_a_request_with_an_effect_is_sent_once() -> None:
    """A server that closes a reused connection may have taken the request: one that must not be repeated gets a
    connection of its own."""
    async with upstream(answers(200, b"1"), [Close()], answers(200, b"2")) as up, http() as client:
        assert await get(client, up.url) == b"1"
        with pytest.raises(HttpError, match="without an answer"):
            await client.request("POST", URL(up.url), {}, b"{}", may_repeat=False)
        assert (up.connections, len(up.exchanges)) == (2, 2)
        response = await client.request("POST", URL(up.url), {}, b"{}", may_repeat=False)
        assert await read_all(response) == b"2"


async def test_nothing_is_sent_again_after_a_byte_of_the_response() -> None:
    """Once the server has begun to answer, a request may have taken effect."""
    async with upstream(answers(200, b"1"), [Raw(b"H"), Close()], answers(200, b"2")) as up, http() as client:
        assert await get(client, up.url) == b"1"
        with pytest.raises(HttpError, match="without an answer"):
            await get(client, up.url)
        assert len(up.exchanges) == 2


@pytest.mark.parametrize("extra", [OK, b"junk"], ids=["a second response", "junk"])
async def test_a_connection_with_extra_bytes_is_not_reused(extra: bytes) -> None:
    """What nobody asked for must not be taken for the next response."""
    async with upstream([Raw(OK + extra)], answers(200, b"2")) as up, http() as client:
        assert await get(client, up.url) == b"ok"
        assert await get(client, up.url) == b"2"
        assert up.connections == 2


async def test_an_idle_connection_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that nobody uses does not stay open forever."""
    monkeypatch.setattr("holdfast.models.http_client.KEEP_ALIVE", 0.01)
    async with upstream(answers(200, b"ok")) as up, http() as client:
        await get(client, up.url)
        await up.closed()


# ---- addresses ----


async def test_ipv6_and_names_are_connected_to() -> None:
    """`localhost` and a literal IPv6 address work, and the Host header names the port."""
    seen: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)

    try:
        async with serving(handle, host="::1") as port, http() as client:
            assert await get(client, f"http://[::1]:{port}/a%20b?c=d") == b"ok"
    except OSError:
        pytest.skip("no IPv6 on this machine")
    assert seen[0].startswith(f"GET /a%20b?c=d HTTP/1.1\r\nHost: [::1]:{port}\r\n".encode())
    async with serving(handle) as port, http() as client:
        assert await get(client, f"http://localhost:{port}/") == b"ok"
        assert await get(client, f"http://me:pass@127.0.0.1:{port}/") == b"ok"
    assert b"Authorization: Basic bWU6cGFzcw==" in seen[2]


def link_local_address() -> str | None:
    """One of this machine, with its network interface."""
    try:
        lines = [line.split() for line in Path("/proc/net/if_inet6").read_text().splitlines()]
    except OSError:
        return None
    found = ((ipaddress.IPv6Address(bytes.fromhex(line[0])), line[-1]) for line in lines)
    return next((f"{address}%{interface}" for address, interface in found if address.is_link_local), None)


async def test_a_link_local_address_keeps_its_interface() -> None:
    """Without the interface the address leads nowhere; other machines are not told its name."""
    host = link_local_address()
    if host is None:
        pytest.skip("no link-local address on this machine")
    heads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)

    async with serving(handle, host=host) as port, http() as client:
        for separator in ("%", "%25"):  # as people write it, and as the standard does
            assert await get(client, f"http://[{host.replace('%', separator)}]:{port}/") == b"ok"
    assert f"Host: [{host.partition('%')[0]}]:{port}\r\n".encode() in heads[0]


async def test_a_name_that_does_not_exist() -> None:
    """The reason is said, and another attempt may help."""
    async with http() as client:
        with pytest.raises(HttpError, match="host not found") as caught:
            await get(client, "http://nowhere.invalid/")
    assert caught.value.error.retry


# ---- TLS ----


def certificate(directory: Path) -> tuple[ssl.SSLContext, Callable[[], ssl.SSLContext]]:
    """A server's context for localhost, and a client's context that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    issued = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "server.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(secret + issued.public_bytes(Encoding.PEM))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(path)
    return server, lambda: ssl.create_default_context(cafile=str(path))


async def test_tls_with_a_trusted_certificate(tmp_path: Path) -> None:
    """Requests over TLS are answered, twice on one connection, and the certificate's names count."""
    server, make_tls = certificate(tmp_path)
    async with serving(answer_ok, server) as port, http(make_tls=make_tls) as client:
        assert [await get(client, f"https://localhost:{port}/") for _ in range(2)] == [b"ok", b"ok"]
        with pytest.raises(HttpError, match="its certificate is not valid"):
            await get(client, f"https://127.0.0.1:{port}/")


async def test_tls_refusals_are_explained(tmp_path: Path) -> None:
    """Nothing is sent to a server with an unknown certificate, nor to one that does not speak TLS."""
    server, _ = certificate(tmp_path)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert not await reader.read(1), "no request gets through"

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(OK)

    async with serving(handle, server) as port, http() as client:
        with pytest.raises(HttpError, match="its certificate is not valid"):
            await get(client, f"https://127.0.0.1:{port}/")
    async with serving(plain) as port, http() as client:
        with pytest.raises(HttpError, match="no secure connection"):
            await get(client, f"https://127.0.0.1:{port}/")


async def test_cancel_in_the_tls_handshake_closes_the_socket() -> None:
    """C7: a server that never finishes the handshake is left within the connect timeout too."""
    closed = anyio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.read(4096):
                pass
        finally:
            closed.set()

    async with serving(handle) as port, http() as client:
        with pytest.raises(HttpError, match=r"no connection within 0\.1 s"):
            await client.request("GET", URL(f"https://127.0.0.1:{port}/"), {}, connect_timeout=0.1)
        with anyio.fail_after(GUARD):
            await closed.wait()


# ---- proxies ----


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://api.example/v1", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://api.example/v1", {"all_proxy": "http://p:3128"}, "http://p:3128"),
        ("https://api.example/v1", {"HTTP_PROXY": "http://p:3128"}, None),
        ("https://api.example/v1", {"HTTPS_PROXY": "socks5://p:1080"}, None),
        ("https://api.example/v1", {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "b.org, .example"}, None),
        ("http://127.0.0.1:11434/v1", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://localhost:1234/v1", {"HTTP_PROXY": "http://p:3128"}, None),
    ],
)
async def test_proxies_are_for_other_machines(url: str, environment: dict[str, str], proxy: str | None) -> None:
    """The usual variables count, with their exceptions, and never for a server on this machine."""
    assert proxy_for(URL(url), environment) == proxy


async def test_plain_requests_go_to_the_proxy() -> None:
    """A proxy is asked for the whole address, with its own credentials."""
    async with upstream(answers(200, b"ok")) as up:
        proxy = up.url.replace("//", "//user:secret@")
        async with http(environment={"http_proxy": proxy}) as client:
            assert await get(client, "http://far.away.example/v1/models?a=1", Authorization="Bearer x") == b"ok"
        asked = up.exchanges[0]
        assert asked.path == "http://far.away.example/v1/models?a=1"
        assert asked.headers["host"] == "far.away.example"
        assert asked.headers["proxy-authorization"] == "Basic dXNlcjpzZWNyZXQ="
        assert asked.headers["authorization"] == "Bearer x"


@pytest.mark.parametrize("secure", [False, True], ids=["http proxy", "https proxy"])
async def test_tls_goes_through_a_tunnel(secure: bool, tmp_path: Path) -> None:
    """CONNECT opens a tunnel, and the key is seen by the server alone."""
    server, make_tls = certificate(tmp_path)
    seen: list[bytes] = []

    async with serving(answer_ok, server) as port:

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

            async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
                while data := await source.read(65536):
                    target.write(data)
                target.close()

            await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

        async with serving(tunnel, server if secure else None) as proxy_port:
            proxy = f"{'https' if secure else 'http'}://user:secret@localhost:{proxy_port}"
            client = HttpClient({"https_proxy": proxy}, make_tls=make_tls)
            # Nothing on this machine goes through a proxy, so the name only looks like another machine's.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("holdfast.models.http_client.is_loopback", lambda url: False)
                for _ in range(2):
                    assert await get(client, "https://localhost:443/", Authorization="Bearer key") == b"ok"
            await client.aclose()
    assert len(seen) == 1
    assert seen[0].startswith(b"CONNECT localhost:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=" in seen[0]
    assert b"key" not in seen[0]


async def test_a_proxy_that_refuses_is_named() -> None:
    """The sentence says that it is the proxy, not the provider."""
    async with upstream(answers(407, b"who are you?")) as up:
        async with http(environment={"https_proxy": up.url}) as client:
            with pytest.raises(HttpError, match=r"proxy 127\.0\.0\.1 refused.*407"):
                await get(client, "https://api.example/v1")
        await up.closed()
