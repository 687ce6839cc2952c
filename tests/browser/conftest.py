"""A real browser on a real server. Where there is no Chromium or no built app, everything here is skipped, loudly."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, sync_playwright

from holdfast.faces.http.web import APP
from tests.browser.see import GUARD_MS
from tests.http.conftest import Start, http_nursery, server, shared, start

__all__ = ["Start", "http_nursery", "server", "shared", "start"]

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
Open = Callable[..., Page]


def missing() -> str | None:
    if CHROMIUM is None:
        return "no chromium on this machine (Debian: apt install chromium)"
    if not (APP / "index.html").exists():
        return "the web app is not built (make install)"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    here = Path(__file__).parent
    for item in items:
        if reason is not None and here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"BROWSER TESTS SKIPPED: {reason}"))


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Not for the whole session: while it is open an event loop runs in this thread, and no other test can run one."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
    yield found
    found.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the pages wrote to the console as errors. Empty at the end, unless a test takes out what it caused."""
    return []


@pytest.fixture
def context(browser: Browser, complaints: list[str]) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1200, "height": 800})
    made.set_default_timeout(GUARD_MS)
    yield made
    made.close()
    assert complaints == []


@pytest.fixture
def open_page(context: BrowserContext, complaints: list[str]) -> Open:
    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def begin(url: str, **size: Any) -> Page:
        page = context.new_page()
        if size:
            page.set_viewport_size({"width": size["width"], "height": size["height"]})
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        return page

    return begin
