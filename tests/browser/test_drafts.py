"""Unsent text on all devices: two browsers that share nothing but the server."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chat_page import GUARD_MS, answers, axe_violations, button, check_transcript, message_box, send
from tests.browser.conftest import ConsoleErrors, Open
from tests.http.client import Served
from tests.http.streams import until


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A page of another browser, as wide as a small phone."""
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    context.set_default_timeout(GUARD_MS)
    yield context.new_page()
    context.close()


def stored(server: Served, chat: str) -> str:
    return str(server.get(f"/api/drafts/{chat}")["text"])


def focus_window(page: Page) -> None:
    page.evaluate("() => dispatchEvent(new Event('focus'))")


def test_text_that_was_not_sent_appears_on_another_device(server: Served, open_page: Open, phone: Page) -> None:
    """U5: typed on one device, continued on another, followed by the first; sending it clears it everywhere."""
    sid = server.session(title="Two devices")
    desk = open_page(f"{server.url}/c/{sid}")
    message_box(desk).fill("light")
    until(lambda: stored(server, sid) == "light")
    phone.goto(f"{server.url}/c/{sid}")
    expect(message_box(phone)).to_have_value("light")
    message_box(phone).fill("light and shade")
    until(lambda: stored(server, sid) == "light and shade")
    focus_window(desk)
    expect(message_box(desk)).to_have_value("light and shade")
    button(phone, "Send").click()
    expect(answers(phone)).to_contain_text("light and shade")
    assert stored(server, sid) == ""
    focus_window(desk)
    expect(message_box(desk)).to_have_value("")
    check_transcript(desk, server)


def test_a_stale_tab_asks_before_it_overwrites(
    server: Served, open_page: Open, phone: Page, console_errors: ConsoleErrors
) -> None:
    """U5: where both have typed, neither text is lost; the choice is accessible, on a phone too."""
    console_errors.expect("412")
    sid = server.session(title="Two devices")
    desk = open_page(f"{server.url}/c/{sid}")
    message_box(desk).fill("old")
    until(lambda: stored(server, sid) == "old")
    phone.goto(f"{server.url}/c/{sid}")
    expect(message_box(phone)).to_have_value("old")
    server.call("PUT", f"/api/drafts/{sid}", {"text": "newer"}, 200)
    for page, choice, kept in ((desk, "Keep this text", "old here"), (phone, "Use it", "old here")):
        message_box(page).fill("old here" if page is desk else "old there")
        expect(page.get_by_role("status").filter(has_text="From another device")).to_contain_text(
            "newer" if page is desk else "old here"
        )
        assert axe_violations(page) == []
        button(page, choice).click()
        expect(button(page, choice)).to_have_count(0)
        expect(message_box(page)).to_have_value(kept)
        until(lambda kept=kept: stored(server, sid) == kept)  # type: ignore[misc]


def test_the_text_of_a_new_chat_follows_too(server: Served, open_page: Open, phone: Page) -> None:
    """U5: and its first message takes it away."""
    desk = open_page(server.url)
    message_box(desk).fill("a new subject")
    until(lambda: stored(server, "new") == "a new subject")
    phone.goto(server.url)
    expect(message_box(phone)).to_have_value("a new subject")
    send(phone, "a new subject", shows="a new subject")
    assert stored(server, "new") == ""
