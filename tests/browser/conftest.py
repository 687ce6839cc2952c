"""A real browser on a real server. Without Chromium or the built app, all browser tests are skipped with a reason."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, sync_playwright

from holdfast.server.web_app import APP
from tests.browser.chat_page import GUARD_MS
from tests.http.conftest import Start, http_forker, reusable, server, shared, start

__all__ = ["Start", "http_forker", "reusable", "server", "shared", "start"]

CHROMIUM: Final = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""The headless shell is the same engine without the desktop's parts: a page costs half the processor time."""
Open = Callable[..., Page]


def missing_requirement() -> str | None:
    if CHROMIUM is None:
        return "no chromium on this machine (Debian: apt install chromium-headless-shell)"
    if not (APP / "index.html").exists():
        return "the web app is not built (make install)"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing_requirement()
    here = Path(__file__).parent
    for item in items:
        if reason is not None and here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"BROWSER TESTS SKIPPED: {reason}"))


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Not session-scoped: while it is open an event loop runs in this thread, and no other test can run one."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    launched = playwright.chromium.launch(
        executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    )
    yield launched
    launched.close()


class ConsoleErrors(list[str]):
    """Errors and warnings in the console. When the pages are closed, all must be among those that the test expects:
    some are reported only after what caused them can be seen."""

    def __init__(self) -> None:
        super().__init__()
        self._expected: list[str] = []

    def expect(self, *texts: str) -> None:
        self._expected += texts

    def unexpected(self) -> list[str]:
        return [error for error in self if not any(text in error for text in self._expected)]


@pytest.fixture
def console_errors() -> ConsoleErrors:
    return ConsoleErrors()


@pytest.fixture
def context(browser: Browser, console_errors: ConsoleErrors) -> Iterator[BrowserContext]:
    created = browser.new_context()
    created.set_default_timeout(GUARD_MS)
    yield created
    created.close()
    assert console_errors.unexpected() == []


@pytest.fixture
def open_page(context: BrowserContext, console_errors: ConsoleErrors) -> Open:
    def on_console(message: ConsoleMessage) -> None:
        is_old_draft = "/api/drafts/" in message.location["url"] and "412" in message.text
        if message.type in ("error", "warning") and not is_old_draft:  # saved while the message was being sent
            console_errors.append(message.text)

    def open_url(url: str, width: int = 1200, height: int = 800) -> Page:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.on("console", on_console)
        page.on("pageerror", lambda error: console_errors.append(str(error)))
        page.goto(url)
        return page

    return open_url
