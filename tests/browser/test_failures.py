"""Failures: reloads, several tabs, a killed server, hidden tabs, chunks that cannot be loaded."""

import re
import urllib.parse

from playwright.sync_api import BrowserContext, expect

from tests.browser.chat_page import (
    answers,
    button,
    check_transcript,
    message_box,
    notice,
    send,
    session_of,
    wait_idle,
)
from tests.browser.conftest import ConsoleErrors, Open, Start
from tests.http.client import Served

HIDE = """hidden => {
  Object.defineProperty(document, "visibilityState", {configurable: true, get: () => hidden ? "hidden" : "visible"});
  document.dispatchEvent(new Event("visibilitychange"));
}"""

NOTED = """
window.noted = [];
window.Notification = class extends Notification {
  static get permission() { return "granted"; }
  constructor(title, options) {
    super(title, options);
    window.noted.push([title, options.body]);
  }
};"""
"""Keeps a list of the notifications that are shown. The headless browser grants no permission to show them."""


def drop_network_errors(console_errors: ConsoleErrors) -> None:
    """A killed server leaves refused connections in the console, and nothing else."""
    console_errors.expect("ERR_", "Failed to load resource", "error occurred when fetching the script")


def test_reload_in_mid_stream(server: Served, open_page: Open) -> None:
    """U1, L5: a reload shows everything so far and continues live."""
    page = open_page(server.url)
    send(page, [{"tokens": 30, "rate": 500}, {"meet": "g"}, {"say": "the end"}], shows="t29")
    page.reload()
    expect(answers(page)).to_contain_text("t29")
    server.order(open="g")
    expect(answers(page)).to_contain_text("the end")
    check_transcript(page, server)


def test_two_tabs_and_a_phone(server: Served, open_page: Open) -> None:
    """U1: what is sent in one tab streams in all of them, and Stop in one is seen in the others."""
    first = open_page(server.url)
    send(first, [{"say": "Everywhere. "}, {"hang": True}], shows="Everywhere.")
    sid = session_of(first)
    second = open_page(f"{server.url}/c/{sid}")
    phone = open_page(f"{server.url}/c/{sid}", width=360, height=740)
    for page in (second, phone):
        expect(answers(page)).to_contain_text("Everywhere.")
    button(phone, "Stop").click()
    for page in (first, second, phone):
        expect(notice(page)).to_contain_text("Stopped")
        check_transcript(page, server)
    send(second, "from the second")
    expect(answers(first)).to_have_count(2)
    expect(answers(first).last).to_contain_text("from the second")


def test_kill_and_restart_in_mid_stream(start: Start, open_page: Open, console_errors: ConsoleErrors) -> None:
    """X1, X5, U3: what was seen before kill -9 is there afterwards; the page heals by itself; Continue finishes."""
    server = start()
    page = open_page(server.url)
    send(page, [{"say": "Seen before the crash. "}, {"hang": True}], shows="Seen before the crash.")
    server.kill()
    expect(page.get_by_text("Connection lost")).to_be_visible()
    message_box(page).fill("typed while it was away")
    again = start(port=urllib.parse.urlsplit(server.url).port)
    expect(page.get_by_text("Connection lost")).to_have_count(0)
    expect(notice(page)).to_contain_text("Interrupted")
    expect(answers(page)).to_contain_text("Seen before the crash.")
    check_transcript(page, again)
    expect(message_box(page)).to_have_value("typed while it was away")
    button(page, "Send").click()
    expect(answers(page).last).to_contain_text("typed while it was away")
    check_transcript(page, again)
    drop_network_errors(console_errors)


def test_a_message_sent_while_the_server_is_away(start: Start, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A2, U3: it waits on the page, also over a reload of the tab, and is stored once when the server is back."""
    server = start()
    page = open_page(server.url)
    send(page, "before", shows="before")
    wait_idle(page)
    sid = session_of(page)
    server.kill()
    send(page, "into the dark")
    expect(page.get_by_text("Will be sent when reconnected")).to_be_visible()
    chats = page.get_by_role("navigation", name="Chats")
    expect(chats.get_by_role("listitem")).to_contain_text(["Unsent"])  # a mark on its chat, not a row of its own
    expect(chats.locator("[aria-current=page]")).to_have_count(1)
    again = start(port=urllib.parse.urlsplit(server.url).port)
    expect(answers(page)).to_have_count(2)
    check_transcript(page, again)
    assert [m["parts"][0]["text"] for m in again.messages(sid) if m["role"] == "user"] == ["before", "into the dark"]
    drop_network_errors(console_errors)


def test_a_chat_that_is_opened_while_the_server_is_away(
    start: Start, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """U3: it has its title and says why it is empty; it is shown when the server is back."""
    server = start()
    server.events(server.send(server.session(title="Tides"), "high water")["run"]["id"])
    page = open_page(server.url)
    chat = page.get_by_role("navigation", name="Chats").get_by_role("link", name="Tides")
    expect(chat).to_be_visible()
    server.kill()
    chat.click()
    expect(page.get_by_role("region", name="Conversation")).to_contain_text("Can’t reach the server.")
    expect(page.get_by_role("heading", name="Tides")).to_be_visible()
    again = start(port=urllib.parse.urlsplit(server.url).port)
    expect(answers(page)).to_contain_text("high water")
    check_transcript(page, again)
    drop_network_errors(console_errors)


def test_a_hidden_tab(server: Served, open_page: Open, context: BrowserContext, console_errors: ConsoleErrors) -> None:
    """U7: a hidden tab closes its streams; that a run ended or needs approval is in its title and in a notification.
    A run whose chat is deleted meanwhile does not end the reports."""
    context.add_init_script(NOTED)
    page = open_page(server.url)
    send(page, [{"say": "Begun. "}, {"meet": "g"}, {"say": "Ended in the background."}], shows="Begun.")
    with page.expect_response("**/api/runs?*"):
        page.evaluate(HIDE, True)
    server.order(open="g")
    expect(page).to_have_title(re.compile("Your answer is ready"))
    assert "Ended in the background." not in answers(page).inner_text()
    page.evaluate(HIDE, False)
    expect(answers(page)).to_contain_text("Ended in the background.")
    expect(page).not_to_have_title(re.compile("Your answer is ready"))
    check_transcript(page, server)
    send(page, [{"say": "Again. "}, {"meet": "h"}, {"call": "c1", "name": "shell", "asks": True}], shows="Again.")
    deleted = server.session()
    server.begin(deleted, [{"meet": "i"}, {"say": "Never."}])
    with page.expect_response("**/api/runs?*"):
        page.evaluate(HIDE, True)
    with page.expect_response(lambda response: response.status == 404):
        server.call("DELETE", f"/api/sessions/{deleted}", expect=204)
        server.order(open="h")
    expect(page).to_have_title(re.compile("needs your approval"))
    page.wait_for_function("() => window.noted.length === 2")
    wanted = [["Holdfast", "Your answer is ready"], ["Holdfast", "A tool needs your approval"]]
    assert page.evaluate("window.noted") == wanted
    page.evaluate(HIDE, False)
    expect(page.get_by_role("group", name="Approval")).to_contain_text("shell")
    drop_network_errors(console_errors)


def test_a_chunk_that_cannot_be_loaded_yet(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """U3: while the Markdown renderer cannot be loaded, the text is shown as it is, and rendered when it can."""
    page = open_page(f"{server.url}/settings")
    away = True
    page.route("**/assets/Markdown-*", lambda route: route.abort() if away else route.fallback())
    button(page, "New chat").click()
    send(page, [{"say": "Some **bold** text."}], shows="Some **bold** text.")
    wait_idle(page)
    away = False
    expect(answers(page).locator("strong")).to_have_text("bold")
    drop_network_errors(console_errors)


def test_an_update_leaves_no_blank_page(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A chunk that a newer version removed makes the old page reload itself, once."""
    page = open_page(f"{server.url}/settings")
    loads: list[str] = []
    page.on("domcontentloaded", lambda loaded: loads.append(loaded.url))
    page.route("**/assets/Compare-*", lambda route: route.fulfill(status=404) if not loads else route.fallback())
    page.route(
        f"{server.url}/",
        lambda route: route.fulfill(body='<script type="module" src="/static/app/assets/index-newer.js"></script>'),
    )
    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("textbox", name="Prompt")).to_be_visible()
    assert loads == [f"{server.url}/compare"]
    drop_network_errors(console_errors)


def test_a_dialog_that_cannot_be_loaded_is_closed(
    server: Served, open_page: Open, context: BrowserContext, console_errors: ConsoleErrors
) -> None:
    """The page stays and says so, what waits for the dialog goes on, and the next time it is loaded."""
    server.session(title="Kept")
    away = True
    for name in ("CommandPalette", "PromptDialog"):
        context.route(f"**/assets/{name}-*.js", lambda route: route.abort() if away else route.fallback())
    context.clock.install()
    page = open_page(f"{server.url}/settings")
    confirmation = page.get_by_role("status", name="Confirmation")
    palette = page.get_by_role("dialog", name="Command palette")

    def wait_for_failure() -> None:
        """Lets the time pass in which loading is tried again."""
        for _ in range(1000):
            page.clock.fast_forward(1000)  # the confirmation stays for several of these
            if confirmation.get_by_text("This could not be opened.").is_visible():
                break
        button(confirmation, "Dismiss").click()

    expect(page.get_by_role("link", name="Kept").first).to_be_visible()  # shortcuts work from now on
    page.keyboard.press("Control+k")
    wait_for_failure()
    open_menu = page.get_by_role("navigation", name="Chats").get_by_role("button", name="Options for Kept").first
    open_menu.click()
    page.get_by_role("menuitem", name="Rename").click()
    wait_for_failure()
    away = False
    page.keyboard.press("Control+k")
    expect(palette).to_be_visible()
    page.keyboard.press("Escape")
    open_menu.click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_role("dialog", name="Rename chat").get_by_label("Title").fill("Renamed")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Renamed").first).to_be_visible()
    console_errors.expect("ERR_", "Failed to fetch dynamically imported module", "Failed to load resource")


def test_an_error_in_the_layout_leaves_no_blank_page(
    server: Served, open_page: Open, context: BrowserContext, console_errors: ConsoleErrors
) -> None:
    """The page says so and offers to reload it."""
    server.session(title="Odd")
    sessions = server.get("/api/sessions")
    without_tags = {**sessions, "items": [{**item, "tags": None} for item in sessions["items"]]}
    odd = True
    address = re.compile(r"/api/sessions(\?|$)")
    context.route(address, lambda route: route.fulfill(json=without_tags) if odd else route.fallback())
    page = open_page(f"{server.url}/settings")
    expect(page.get_by_role("alert")).to_contain_text("Something went wrong")
    odd = False
    button(page, "Reload").click()
    expect(page.get_by_role("link", name="Odd").first).to_be_visible()
    console_errors.expect("Cannot read properties of null")


def test_a_journal_that_comes_back_late(start: Start, open_page: Open) -> None:
    """J1, J2: a pending recovery is shown, and the output appears by itself when the journal is back."""
    server = start()
    page = open_page(server.url)
    send(page, [{"say": "Kept in the journal. "}, {"hang": True}], shows="Kept in the journal.")
    sid = session_of(page)
    page.close()
    server.kill()
    again = start(journal_away=True)
    page = open_page(f"{again.url}/c/{sid}")
    expect(notice(page)).to_contain_text("recovering the output")
    again.order(journal_away=False)
    expect(answers(page)).to_contain_text("Kept in the journal.")
    expect(notice(page)).to_contain_text("was recovered")
    check_transcript(page, again)
