"""Calm under failure: reloads, several tabs, a killed server, hidden tabs."""

import re
import urllib.parse

from playwright.sync_api import BrowserContext, expect

from tests.browser.conftest import Open, Start
from tests.browser.see import answers, button, finished, message_box, same, send, session_of
from tests.http.client import Served

HIDE = """hidden => {
  Object.defineProperty(document, "visibilityState", {configurable: true, get: () => hidden ? "hidden" : "visible"});
  document.dispatchEvent(new Event("visibilitychange"));
}"""

NOTED = """
window.noted = [];
window.Notification = class extends Notification {
  constructor(title, options) {
    super(title, options);
    window.noted.push([title, options.body]);
  }
};"""
"""The browser's own notifications, and a list of them."""


def network_noise(complaints: list[str]) -> None:
    """A server that was killed leaves refused connections in the console, and nothing else."""
    complaints[:] = [text for text in complaints if "ERR_" not in text and "Failed to load resource" not in text]


def test_reload_in_mid_stream(server: Served, open_page: Open) -> None:
    """U1, L5: a refresh shows everything so far and goes on live."""
    page = open_page(server.url)
    send(page, [{"tokens": 30, "rate": 500}, {"meet": "g"}, {"say": "the end"}])
    expect(answers(page)).to_contain_text("t29")
    page.reload()
    expect(answers(page)).to_contain_text("t29")
    server.order(open="g")
    expect(answers(page)).to_contain_text("the end")
    finished(page)
    same(page, server, session_of(page))


def test_two_tabs_and_a_phone(server: Served, open_page: Open) -> None:
    """U1: what is sent in one tab streams in all of them, and Stop in one is seen in the others."""
    first = open_page(server.url)
    send(first, [{"say": "Everywhere. "}, {"hang": True}])
    expect(answers(first)).to_contain_text("Everywhere.")
    sid = session_of(first)
    second = open_page(f"{server.url}/c/{sid}")
    phone = open_page(f"{server.url}/c/{sid}", width=360, height=740)
    for page in (second, phone):
        expect(answers(page)).to_contain_text("Everywhere.")
    button(phone, "Stop").click()
    for page in (first, second, phone):
        expect(page.get_by_role("note", name="Notice")).to_contain_text("Stopped")
        finished(page)
        same(page, server, sid)
    send(second, "from the second")
    expect(answers(first)).to_have_count(2)
    expect(answers(first).last).to_contain_text("from the second")


def test_kill_and_restart_in_mid_stream(start: Start, open_page: Open, complaints: list[str]) -> None:
    """X1, X5, U3: what was seen before kill -9 is there afterwards; the page heals by itself; Continue finishes."""
    server = start()
    page = open_page(server.url)
    send(page, [{"say": "Seen before the crash. "}, {"hang": True}])
    expect(answers(page)).to_contain_text("Seen before the crash.")
    sid = session_of(page)
    server.kill()
    expect(page.get_by_text("The server cannot be reached")).to_be_visible()
    message_box(page).fill("typed while it was away")
    again = start(port=urllib.parse.urlsplit(server.url).port)
    expect(page.get_by_text("The server cannot be reached")).to_have_count(0)
    expect(page.get_by_role("note", name="Notice")).to_contain_text("Interrupted")
    expect(answers(page)).to_contain_text("Seen before the crash.")
    same(page, again, sid)
    expect(message_box(page)).to_have_value("typed while it was away")
    button(page, "Send").click()
    expect(answers(page).last).to_contain_text("typed while it was away")
    finished(page)
    same(page, again, sid)
    network_noise(complaints)


def test_a_message_sent_while_the_server_is_away(start: Start, open_page: Open, complaints: list[str]) -> None:
    """A2, U3: it waits on the page, also over a reload of the tab, and is stored once when the server is back."""
    server = start()
    page = open_page(server.url)
    send(page, "before")
    finished(page)
    sid = session_of(page)
    expect(answers(page)).to_contain_text("before")
    server.kill()
    send(page, "into the dark")
    expect(page.get_by_text("Waiting for the server")).to_be_visible()
    again = start(port=urllib.parse.urlsplit(server.url).port)
    expect(answers(page)).to_have_count(2)
    finished(page)
    same(page, again, sid)
    assert [m["parts"][0]["text"] for m in again.messages(sid) if m["role"] == "user"] == ["before", "into the dark"]
    network_noise(complaints)


def test_a_hidden_tab_gives_its_connections_back_and_heals(server: Served, open_page: Open) -> None:
    """U7: a run that ends while its tab is hidden says so in the title; shown again, the page has everything."""
    page = open_page(server.url)
    send(page, [{"say": "Begun. "}, {"meet": "g"}, {"say": "Ended while nobody looked."}])
    expect(answers(page)).to_contain_text("Begun.")
    sid = session_of(page)
    with page.expect_response("**/api/runs?*"):
        page.evaluate(HIDE, True)
    server.order(open="g")
    expect(page).to_have_title(re.compile("An answer is ready"))
    assert "Ended while nobody looked." not in answers(page).inner_text()
    page.evaluate(HIDE, False)
    expect(answers(page)).to_contain_text("Ended while nobody looked.")
    expect(page).not_to_have_title(re.compile("An answer is ready"))
    finished(page)
    same(page, server, sid)


def test_a_tool_that_asks_a_hidden_tab(server: Served, open_page: Open, context: BrowserContext) -> None:
    """U7: a question that comes up while the tab is hidden is in its title, and in a notification where allowed."""
    context.grant_permissions(["notifications"], origin=server.url)
    context.add_init_script(NOTED)
    page = open_page(server.url)
    send(page, [{"say": "Begun. "}, {"meet": "g"}, {"call": "c1", "name": "shell", "asks": True}])
    expect(answers(page)).to_contain_text("Begun.")
    with page.expect_response("**/api/runs?*"):
        page.evaluate(HIDE, True)
    server.order(open="g")
    expect(page).to_have_title(re.compile("asks for your permission"))
    page.wait_for_function("() => window.noted.length")
    assert page.evaluate("window.noted") == [["Holdfast", "A tool asks for your permission"]]
    page.evaluate(HIDE, False)
    expect(page.get_by_role("group", name="Approval")).to_contain_text("shell")


def test_a_part_of_the_app_that_cannot_be_loaded_yet(server: Served, open_page: Open, complaints: list[str]) -> None:
    """U3: while the Markdown renderer cannot be had, the text is shown as it is, and drawn when it can."""
    page = open_page(f"{server.url}/settings")
    away = True
    page.route("**/assets/Markdown-*", lambda route: route.abort() if away else route.fallback())
    button(page, "New chat").click()
    send(page, [{"say": "Some **bold** text."}])
    expect(answers(page)).to_contain_text("Some **bold** text.")
    finished(page)
    away = False
    expect(answers(page).locator("strong")).to_have_text("bold")
    network_noise(complaints)


def test_an_update_leaves_no_blank_page(server: Served, open_page: Open, complaints: list[str]) -> None:
    """A part that a newer version has taken away makes the old page load the new one, by itself and once."""
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
    network_noise(complaints)


def test_a_journal_that_comes_late(start: Start, open_page: Open) -> None:
    """J1, J2: recovery that is pending is said so, and the output appears by itself when the journal is back."""
    server = start()
    page = open_page(server.url)
    send(page, [{"say": "Kept in the journal. "}, {"hang": True}])
    expect(answers(page)).to_contain_text("Kept in the journal.")
    sid = session_of(page)
    page.close()
    server.kill()
    again = start(journal_away=True)
    page = open_page(f"{again.url}/c/{sid}")
    expect(page.get_by_role("note", name="Notice")).to_contain_text("still being recovered")
    again.order(journal_away=False)
    expect(answers(page)).to_contain_text("Kept in the journal.")
    expect(page.get_by_role("note", name="Notice")).to_contain_text("recovered")
    same(page, again, sid)
