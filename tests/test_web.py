"""The browser app's own tests, its size, and how the server hands it out."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from holdfast.server.web_app import APP
from tests.fork_server import ForkServer, ServerForker
from tests.http.client import Served

WEB = Path(__file__).parents[1] / "web"
FIRST_LOAD = 130_000
"""Bytes, gzipped, before the lazy parts."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_the_core_of_the_web_app(long: bool) -> None:
    """X4, L5, U3, U5: vitest passes: the reducer on the recorded journals, the stream client, the stores. `long`: with
    longer hostile texts."""
    if not (WEB / "node_modules" / ".holdfast").exists():
        pytest.skip("SKIPPED: no Node packages here (make install)")
    command = [sys.executable, str(WEB / "build.py"), "test"]
    environment = {**os.environ, "HOLDFAST_LONG_TESTS": "yes" if long else ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_the_generated_types_are_current() -> None:
    """`web/src/core/api-types.ts` is what `web/generate_types.py` makes of the server's schemas."""
    command = [sys.executable, str(WEB / "generate_types.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def test_the_first_load_is_small() -> None:
    """What the page names itself, gzipped, is under 130 kB; the rest is loaded when it is needed."""
    if not (APP / "index.html").exists():
        pytest.skip("SKIPPED: the web app is not built (make install)")
    named = re.findall(r'(?:src|href)="/static/app/([^"]+\.(?:js|css))"', (APP / "index.html").read_text())
    assert len(named) >= 2
    assert sum(len(gzip.compress((APP / name).read_bytes())) for name in named) < FIRST_LOAD


def test_the_licenses_of_its_packages_come_with_the_app() -> None:
    """Every package that the app contains is named with its license text, and none that only builds it."""
    if not (APP / "index.html").exists():
        pytest.skip("SKIPPED: the web app is not built (make install)")
    notices = (APP / "third-party-notices.txt").read_text()
    wanted = json.loads((WEB / "package.json").read_text())
    heads = {line.partition(" ")[0] for line in notices.splitlines()}
    assert set(wanted["dependencies"]) <= heads
    assert not set(wanted["devDependencies"]) & heads
    assert "Copyright (c) Meta Platforms, Inc. and affiliates." in notices


def test_the_page_is_asked_for_each_time_and_its_parts_once(tmp_path: Path, fork_server: ForkServer) -> None:
    """An update never leaves a blank page: index.html is revalidated, assets are kept, packed copies are sent."""
    if not (APP / "index.html").exists():
        pytest.skip("SKIPPED: the web app is not built (make install)")
    with Served(ServerForker(fork_server, "tests.http.server"), tmp_path / "data") as server:
        server.ready()
        page = server.http.get("/")
        assert page.headers["cache-control"] == "no-cache"
        assert server.http.get("/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
        assert server.http.get("/c/ses_x").text == page.text
        name = re.findall(r'src="(/static/app/assets/[^"]+)"', page.text)[0]
        asset = server.http.get(name, headers={"Accept-Encoding": "gzip"})
        assert "immutable" in asset.headers["cache-control"]
        assert asset.headers["content-encoding"] == "gzip"
        for path in ("/static/app/%2e%2e/login.js", "/static/app/assets/..%2f..%2fweb.py", "/static/app/nothing.js"):
            assert _raw(server.url, path).status_code == 404


def _raw(url: str, path: str) -> httpx.Response:
    return httpx.get(httpx.URL(url, raw_path=path.encode()), verify=False, timeout=30)
