"""The app behind real proxies, set up by what docs/how-to/reverse-proxy.md shows and otherwise with their defaults."""

import datetime
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Protocol

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.sync_api import Browser, Page, expect

from tests.browser.chat_page import GUARD_MS, answers, button, check_transcript, notice, send
from tests.http.client import Served
from tests.http.conftest import Start
from tests.servers import HOW_TO, Nginx, free_port, needs

PASSWORD: Final = "correct horse"
ROOT: Final = "/holdfast"


class Proxy(Protocol):
    url: str

    def close(self) -> None: ...


def _blocks(language: str) -> list[str]:
    """Of the page: for a whole host, then below a path."""
    return re.findall(rf"```{language}\n(.*?)```", (HOW_TO / "reverse-proxy.md").read_text(), re.DOTALL)


def _certificate(directory: Path) -> str:
    """Makes a certificate for 127.0.0.1. Returns nginx' settings that name it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Holdfast test")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    (directory / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (directory / "key.pem").write_bytes(key.private_bytes(*form))
    return f"ssl_certificate {directory}/cert.pem; ssl_certificate_key {directory}/key.pem;"


class Caddy:
    """`address` in a block of the page becomes a free port of this machine."""

    def __init__(self, block: str, directory: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        file = directory / "Caddyfile"
        block = re.sub(r"^\S+\.example\.com", f"http://127.0.0.1:{port}", block)
        file.write_text(f"{{\n    admin off\n}}\n{block}")
        program = needs(shutil.which("caddy"), "caddy")
        environ = {"HOME": str(directory), "XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
        command = [program, "run", "--config", str(file), "--adapter", "caddyfile"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environ)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if b"serving initial configuration" in line:
                return
        raise AssertionError("Caddy did not start")

    def close(self) -> None:
        self._process.kill()  # told to end, it would wait for open streams
        self._process.communicate(timeout=60)


class Traefik:
    """A file of its file provider: the block of the page, with the rule's host, entry point and server of this test."""

    def __init__(self, block: str, directory: Path, rule: str = "") -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        block = re.sub(r"rule: .*", f"rule: Host(`127.0.0.1`){rule}", block)
        block = re.sub(r"entryPoints: .*", "entryPoints: [test]", block).replace("      tls: {}\n", "")
        (directory / "dynamic.yaml").write_text(block)
        if (program := shutil.which("traefik")) is None:
            pytest.skip("SKIPPED FOR WANT OF A SERVER: put Traefik's program on the PATH")
        command = [program, f"--entryPoints.test.address=127.0.0.1:{port}", "--log.level=INFO"]
        command += [f"--providers.file.filename={directory}/dynamic.yaml", "--global.checkNewVersion=false"]
        command += ["--global.sendAnonymousUsage=false"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory)
        ends_at = time.monotonic() + GUARD_MS / 1000
        transport = httpx.HTTPTransport(retries=8)  # until it listens
        with httpx.Client(transport=transport, trust_env=False) as client:
            # The file is read after that; until then there is no router, which is 404.
            while client.get(f"{self.url}{ROOT if rule else ''}/healthz").status_code == 404:
                assert time.monotonic() < ends_at

    def close(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=60)


def _whole_host(served: Served, directory: Path) -> Proxy:
    """HTTPS with HTTP/2, and everything compressed."""
    block = _blocks("nginx")[0].replace("listen 443 ssl;", f"listen PORT ssl http2; {_certificate(directory)}")
    nginx = Nginx("gzip on; gzip_types *; " + block.replace("http://127.0.0.1:8484", served.url))
    nginx.url = nginx.url.replace("http:", "https:")
    return nginx


def _below_path(served: Served, directory: Path) -> Proxy:
    location = _blocks("nginx")[1].replace("http://127.0.0.1:8484", served.url.removesuffix(ROOT))
    return Nginx(f"server {{ listen 127.0.0.1:PORT; {location} }}")


def _path_removed(served: Served, directory: Path) -> Proxy:
    location = _blocks("nginx")[1].replace("http://127.0.0.1:8484", served.url.removesuffix(ROOT) + "/")
    return Nginx(f"server {{ listen 127.0.0.1:PORT; {location} }}")


def _caddy(served: Served, directory: Path) -> Proxy:
    return Caddy(_blocks("caddy")[0].replace("127.0.0.1:8484", served.url.removeprefix("http://")), directory)


def _caddy_below_path(served: Served, directory: Path) -> Proxy:
    address = served.url.removeprefix("http://").removesuffix(ROOT)
    return Caddy(_blocks("caddy")[1].replace("127.0.0.1:8484", address), directory)


def _traefik(served: Served, directory: Path) -> Proxy:
    return Traefik(_blocks("yaml")[0].replace("http://127.0.0.1:8484", served.url), directory)


def _traefik_below_path(served: Served, directory: Path) -> Proxy:
    (rule,) = re.findall(r"(&& PathPrefix\(`/holdfast`\))", (HOW_TO / "reverse-proxy.md").read_text())
    block = _blocks("yaml")[0].replace("http://127.0.0.1:8484", served.url.removesuffix(ROOT))
    return Traefik(block, directory, f" {rule}")


@pytest.fixture
def proxies() -> Iterator[list[Proxy]]:
    started: list[Proxy] = []
    yield started
    for proxy in started:
        proxy.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(GUARD_MS)
    yield context.new_page()
    context.close()


def _log_in(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_label("Password").fill(PASSWORD)
    button(page, "Log in").click()


@pytest.mark.parametrize(
    ("make", "root"),
    [
        pytest.param(_whole_host, "", id="nginx"),
        pytest.param(_below_path, ROOT, id="nginx-path"),
        pytest.param(_path_removed, ROOT, id="nginx-path-removed"),
        pytest.param(_caddy, "", id="caddy"),
        pytest.param(_caddy_below_path, ROOT, id="caddy-path"),
        pytest.param(_traefik, "", id="traefik"),
        pytest.param(_traefik_below_path, ROOT, id="traefik-path"),
    ],
)
def test_a_chat_through_a_proxy(
    start: Start,
    page: Page,
    proxies: list[Proxy],
    tmp_path: Path,
    make: Callable[[Served, Path], Proxy],
    root: str,
) -> None:
    """Tokens arrive one by one, a reload in mid-stream shows them again, and Stop stops, with the proxy's defaults."""
    served = start(password=PASSWORD, root_path=root, trusted_proxies=["127.0.0.1"])
    served.post("/api/login", {"password": PASSWORD}, 204)
    proxies.append(make(served, tmp_path))
    started_at = f"{proxies[-1].url}{root}/"
    _log_in(page, f"{started_at}settings")
    page.wait_for_url(f"{started_at}settings")
    page.get_by_role("link", name="Holdfast").first.click()
    script = [{"say": "first "}, {"meet": "here"}, {"say": "second "}, {"meet": "there"}, {"say": "third"}]
    send(page, script, "first")  # nothing follows it before the gate opens
    expect(page.locator("[data-connection=online]")).to_have_count(1)  # events arrive, nothing is polled
    assert page.url.startswith(f"{started_at}c/")
    page.reload()
    expect(answers(page).last).to_contain_text("first")
    served.order(open="here")
    expect(answers(page).last).to_contain_text("second")
    served.order(open="there")
    check_transcript(page, served)
    send(page, [{"say": "more"}, {"hang": True}], "more")
    button(page, "Stop").click()
    expect(notice(page)).to_be_visible()
    check_transcript(page, served)
    keys = page.evaluate("() => Object.keys(localStorage)")
    assert [key for key in keys if key.startswith("/") != bool(root)] == []  # another server on the host has its own
    cookies = {str(cookie.get("name")): cookie for cookie in page.context.cookies()}
    secure = started_at.startswith("https:")
    assert cookies["__Host-holdfast" if secure else "holdfast"].get("path") == (root or "/")


def test_a_login_with_a_wrong_host_says_what_to_set(
    start: Start, page: Page, proxies: list[Proxy], tmp_path: Path
) -> None:
    """A proxy that does not pass on the host is named, with the header that arrived and the setting that is missing."""
    served = start(password=PASSWORD)
    proxies.append(Nginx(f"server {{ listen 127.0.0.1:PORT; location / {{ proxy_pass {served.url}; }} }}"))
    _log_in(page, proxies[-1].url)
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text(f"a page of {proxies[-1].url} (header Origin)")
    expect(problem).to_contain_text(f"{served.url.removeprefix('http://')} (header Host)")
    expect(problem).to_contain_text("proxy_set_header Host $http_host;")


def test_a_proxy_without_a_password_is_explained(start: Start, page: Page, proxies: list[Proxy]) -> None:
    """A person sees a page that says what is missing, not JSON."""
    served = start()
    location = _blocks("nginx")[1].replace("/holdfast/", "/").replace("http://127.0.0.1:8484", served.url)
    proxies.append(Nginx(f"server {{ listen 127.0.0.1:PORT; {location} }}"))
    page.goto(proxies[-1].url)
    expect(page.get_by_role("heading", name="No access")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("A server behind a proxy needs a password")


@pytest.mark.parametrize("compression", ["", "gzip on; gzip_types *; gzip_proxied any;"])
def test_tokens_are_not_held_back(start: Start, proxies: list[Proxy], compression: str) -> None:
    """A proxy with its defaults passes on a few bytes at once, also if it compresses them."""
    served = start(password=PASSWORD)
    served.post("/api/login", {"password": PASSWORD}, 204)
    location = _blocks("nginx")[1].replace("/holdfast/", "/").replace("http://127.0.0.1:8484", served.url)
    proxies.append(Nginx(f"{compression} server {{ listen 127.0.0.1:PORT; {location} }}"))
    run = served.stand(served.session(), [{"say": "first"}, {"meet": "here"}])
    url = f"{proxies[-1].url}/api/runs/{run}/events"
    with httpx.stream("GET", url, cookies=served.http.cookies, timeout=10) as response:
        assert any("first" in line for line in response.iter_lines())
    served.order(open="here")


def test_streams_arrive_in_time_with_short_timeouts(start: Start, proxies: list[Proxy]) -> None:
    """A stream without events outlives the proxy's limit on silence, because of the heartbeats."""
    served = start(password=PASSWORD, heartbeat=0.2)
    served.post("/api/login", {"password": PASSWORD}, 204)
    location = f"proxy_pass {served.url}; proxy_set_header Host $http_host; proxy_read_timeout 1s;"
    proxies.append(Nginx(f"server {{ listen 127.0.0.1:PORT; location / {{ {location} }} }}"))
    run = served.begin(served.session(), [{"say": "first"}, {"meet": "here"}, {"say": "second"}])
    cookies, url = served.http.cookies, f"{proxies[-1].url}/api/runs/{run}/events"
    with httpx.stream("GET", url, cookies=cookies, timeout=30) as response:
        lines, begun = response.iter_lines(), time.monotonic()
        while time.monotonic() < begun + 1.5:
            next(lines)
        served.order(open="here")
        assert any("second" in line for line in lines)
