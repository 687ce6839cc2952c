"""A server that a reverse proxy publishes below a path of its host."""

import json
import re
from pathlib import Path

import pytest

from holdfast.core.errors import ConfigError
from holdfast.server.app import build
from holdfast.server.authenticator import Authenticator
from holdfast.server.context import ApiContext
from holdfast.storage.file_store import FileStore
from holdfast.storage.key_file import KeyFile
from tests.harness import running
from tests.http.client import Served
from tests.http.conftest import Start

PASSWORD = "correct horse"
PAGE = {"Accept": "text/html"}


@pytest.fixture
def published(start: Start) -> Served:
    return start(root_path="/holdfast", password=PASSWORD)


def test_addresses_lead_below_the_path(published: Served) -> None:
    """The printed address, redirects, references of the pages and locations of runs have the path, whether the request
    had it or a proxy removed it."""
    assert published.url.endswith("/holdfast")
    direct = published.url.removesuffix("/holdfast")
    for base in (direct, published.url):
        answer = published.http.get(f"{base}/c/x?y=1", headers=PAGE)
        assert answer.headers["location"] == "/holdfast/login?next=%2Fc%2Fx%3Fy%3D1"
        login = published.http.get(f"{base}/login").text
        assert {path.split("/")[1] for path in re.findall(r'(?:src|href)="([^"]+)"', login)} == {"holdfast"}
    published.post("/api/login", {"password": PASSWORD}, 204)
    page = published.http.get("/c/x").text
    assert 'data-root-path="/holdfast"' in page
    assert {path.split("/")[1] for path in re.findall(r'(?:src|href)="(/[^"]+)"', page)} == {"holdfast"}
    sent = published.http.post(f"/api/sessions/{published.session()}/runs", json={"input": "hello"})
    assert sent.headers["location"].startswith("/holdfast/api/runs/")
    assert published.get("/openapi.json")["servers"] == [{"url": "/holdfast"}]
    assert published.http.get(f"{direct}/healthz").status_code == 200


@pytest.mark.parametrize("secure", [False, True])
def test_cookies_are_limited_to_the_path(published: Served, *, secure: bool) -> None:
    """Other apps on the host do not receive the login, and browsers refuse the secure one from an insecure page."""
    headers = {"X-Forwarded-Proto": "https"} if secure else {}
    answer = published.http.post("/api/login", json={"password": PASSWORD}, headers=headers)
    cookies = answer.headers.get_list("set-cookie")
    assert len(cookies) == 2
    prefix = "__Secure-holdfast" if secure else "holdfast"
    assert all(cookie.startswith(prefix) and "; Path=/holdfast;" in cookie for cookie in cookies)
    held = cookies[0].partition(";")[0]
    assert published.http.get("/api/sessions", headers={**headers, "Cookie": held}).status_code == 200


def test_a_login_link_leads_below_the_path(published: Served) -> None:
    """Whoever has the server's token gets a link to the page's address, which leads to the page."""
    token = json.loads((published.data_dir / "server.json").read_text())["token"]
    made = published.post("/api/login-links", None, 201, headers={"Authorization": f"Bearer {token}"})
    assert made["root_path"] == "/holdfast"
    opened = published.http.get(f"{published.url}{made['path']}")
    assert (opened.status_code, opened.headers["location"]) == (303, "/holdfast/")
    assert published.http.get("/api/sessions").status_code == 200


OWN = ["/api/holdfast", "/v1", "/static", "/login", "/c", "/settings", "/open", "/docs", "/setup", "/openapi.json"]


@pytest.mark.anyio
async def test_a_path_of_the_app_cannot_be_the_root_path(tmp_path: Path) -> None:
    """`/api/…` and pages could not be told from the same path after a proxy removed the root path."""
    async with running([], files=FileStore(tmp_path / "files")) as it:
        gate = Authenticator(KeyFile(tmp_path), it.world.clock)
        for path in OWN:
            with pytest.raises(ConfigError, match="choose another"):
                build(ApiContext(it.engine, gate, [("chat", True, True)], root_path=path))
        build(ApiContext(it.engine, gate, [("chat", True, True)], root_path="/holdfast"))


def test_a_proxy_that_hides_https_is_reported(start: Start) -> None:
    """The login works, and the log says why its cookie is not marked as secure."""
    served = start(password=PASSWORD)
    host = served.url.removeprefix("http://")
    answer = served.http.post("/api/login", json={"password": PASSWORD}, headers={"Origin": f"https://{host}"})
    assert answer.status_code == 204
    assert "did not send X-Forwarded-Proto: https" in served.complaints
