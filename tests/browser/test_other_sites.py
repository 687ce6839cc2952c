"""What the page of another site can do to a server without a password, in a real browser."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import BrowserContext

from tests.http.client import Served

_PAGE = b"<!doctype html><title>other</title><body></body>"
_ASKS = (
    "fetch(url, {mode: 'no-cors'}).then(done, done)",
    "fetch(url).then(done, done)",
    "Object.assign(new Image(), {onload: done, onerror: done}).src = url",
    "document.body.append(Object.assign(document.createElement('iframe'), {src: url, onload: done}))",
    "const source = new EventSource(url); source.onerror = () => { source.close(); done() }",
    "document.head.append(Object.assign(document.createElement('script'), {src: url, onload: done, onerror: done}))",
)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(_PAGE)))
        self.end_headers()
        self.wfile.write(_PAGE)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def other_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def refused(server: Served) -> float:
    found = re.search(r'method="GET",status="403"} ([0-9.]+)', server.http.get("/metrics").text)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])  # another site, and another port of the same one
def test_the_page_of_another_site_can_only_link_here(
    context: BrowserContext, server: Served, other_port: int, host: str
) -> None:
    """Fetches, images, frames and event streams are refused; a link that the person clicks is answered."""
    target = f"{server.url}/api/sessions?query=secret"
    page = context.new_page()
    page.goto(f"http://{host}:{other_port}/")
    for ask in _ASKS:
        before = refused(server)
        page.evaluate(f"url => new Promise(done => {{ {ask} }})", target)
        # The browser hides the response from the page, so the server is asked what it answered.
        assert refused(server) == before + 1, ask
    page.evaluate(
        "url => document.body.append(Object.assign(document.createElement('a'), {href: url, textContent: 'open'}))",
        target,
    )
    with page.expect_response(target) as response:
        page.get_by_role("link", name="open").click()
    assert response.value.status == 200
