"""Nothing typed or sent is lost: reloads before the server answers, tabs that close, servers and chats that go away."""

import json
import re
import urllib.parse

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chat_page import (
    answers,
    axe_violations,
    button,
    check_transcript,
    message_box,
    notice,
    send,
    session_of,
    wait_idle,
)
from tests.browser.conftest import ConsoleErrors, Open, Start
from tests.browser.test_failures import drop_network_errors
from tests.http.client import Served

HANG = json.dumps([{"say": "Begun. "}, {"hang": True}])


def asked(server: Served) -> list[list[str]]:
    """The texts of the user messages of each session."""
    return [
        [m["parts"][0]["text"] for m in server.messages(session["id"]) if m["role"] == "user"]
        for session in server.get("/api/sessions")["items"]
    ]


@pytest.mark.parametrize("arrives", [False, True])
def test_a_new_chat_survives_a_reload_before_the_server_answers(
    server: Served, open_page: Open, console_errors: ConsoleErrors, arrives: bool
) -> None:
    """A2, U5: reloaded before the response of the session's creation, which did or did not arrive: one chat, sent."""
    page = open_page(server.url)

    lost: list[Route] = []

    def lose(route: Route) -> None:
        if route.request.method != "POST" or lost:
            route.fallback()
            return
        if arrives:
            route.fetch()
        lost.append(route)

    page.route("**/api/sessions", lose)
    with page.expect_request(lambda request: request.method == "POST"):
        send(page, "not to be lost")
    page.reload()
    expect(answers(page)).to_contain_text("not to be lost")
    check_transcript(page, server)
    assert asked(server) == [["not to be lost"]]
    drop_network_errors(console_errors)


def test_a_new_chat_is_sent_when_the_server_is_back(
    start: Start, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """U3, U5: a chat begun while the server is away is shown, reachable from elsewhere, and begun once it is back."""
    server = start()
    page = open_page(server.url)
    server.kill()
    expect(page.get_by_text("Connection lost")).to_be_visible()
    send(page, "begun in the dark")
    expect(page.get_by_text("Will be sent when reconnected")).to_be_visible()
    assert axe_violations(page) == []
    button(page, "New chat").click()
    expect(page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    page.get_by_role("region", name="Unsent").get_by_role("link", name="begun in the dark").click()
    message_box(page).fill("typed meanwhile")
    again = start(port=urllib.parse.urlsplit(server.url).port)
    expect(answers(page)).to_contain_text("begun in the dark")
    check_transcript(page, again)
    expect(message_box(page)).to_have_value("typed meanwhile")
    assert asked(again) == [["begun in the dark"]]
    expect(page.get_by_role("region", name="Unsent")).to_have_count(0)
    drop_network_errors(console_errors)


def test_messages_of_two_tabs_are_sent_after_one_is_closed(
    start: Start, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """A2, U5: both tabs send while the server is away; the one that stays sends both messages, each once."""
    server = start()
    pages: list[Page] = []
    for n in range(2):
        page = open_page(f"{server.url}/c/{server.session(title=f'Chat {n}')}")
        send(page, f"light {n}", shows=f"light {n}")
        wait_idle(page)
        pages.append(page)
    server.kill()
    for n, page in enumerate(pages):
        send(page, f"dark {n}")
        waiting = page.get_by_role("article").filter(has_text=f"dark {n}")
        expect(waiting.get_by_text("Will be sent when reconnected")).to_be_visible()
    pages[1].close()
    again = start(port=urllib.parse.urlsplit(server.url).port)
    expect(answers(pages[0])).to_have_count(2)
    check_transcript(pages[0], again)
    pages[0].get_by_role("navigation", name="Chats").get_by_role("link", name="Chat 1").click()
    expect(answers(pages[0])).to_have_count(2)
    check_transcript(pages[0], again)
    assert sorted(asked(again)) == [["light 0", "dark 0"], ["light 1", "dark 1"]]
    drop_network_errors(console_errors)


def test_what_was_typed_in_a_chat_deleted_elsewhere_is_kept(
    server: Served, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """U5: its draft and its waiting message are shown where the chat was, found again, and used in a new chat."""
    sid = server.session(title="Doomed")
    page = open_page(f"{server.url}/c/{sid}")
    expect(page.get_by_role("heading", name="Doomed")).to_be_visible()
    page.route(f"**/api/sessions/{sid}/runs", lambda route: route.abort())
    send(page, "waiting")
    expect(page.get_by_text("Will be sent when reconnected")).to_be_visible()
    message_box(page).fill("half a thought")
    button(page, "New chat").click()
    server.call("DELETE", f"/api/sessions/{sid}", expect=204)
    unsent = page.get_by_role("region", name="Unsent")
    expect(unsent.get_by_role("link", name="half a thought")).to_be_visible()
    page.unroute(f"**/api/sessions/{sid}/runs")
    page.reload()
    expect(unsent.get_by_role("link")).to_have_count(2)
    unsent.get_by_role("link", name="half a thought").click()
    expect(page).to_have_title("Chat not found · Holdfast")
    kept = page.get_by_role("region", name="Unsent messages")
    assert axe_violations(page) == []
    expect(kept).to_contain_text(re.compile("waiting.*half a thought", re.DOTALL))
    button(page, "Use in a new chat").click()
    expect(message_box(page)).to_have_value("waiting\n\nhalf a thought")
    expect(unsent).to_have_count(0)
    drop_network_errors(console_errors)


def test_deleting_a_chat_discards_its_draft(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """What was typed in a chat that one deletes oneself is not kept as unsent."""
    page = open_page(f"{server.url}/c/{server.session(title='Mine')}")
    message_box(page).fill("half a thought")
    button(page, "New chat").click()
    row = page.get_by_role("navigation", name="Chats").get_by_role("listitem").filter(has_text="Mine")
    row.hover()
    button(row, "Options for Mine").click()
    page.get_by_role("menuitem", name="Delete").click()
    button(page.get_by_role("dialog"), "Delete").click()
    expect(row).to_have_count(0)
    expect(page.get_by_role("region", name="Unsent")).to_have_count(0)
    console_errors.expect("404")  # leaving the page deletes it, and the next page looks whether that worked
    page.reload()
    expect(message_box(page)).to_be_visible()
    expect(page.get_by_role("region", name="Unsent")).to_have_count(0)


def test_a_queued_message_shows_and_keeps_its_file(server: Served, open_page: Open) -> None:
    """A3: the queue names the files of a message, and editing its text keeps them."""
    page = open_page(server.url)
    send(page, [{"say": "Busy. "}, {"meet": "g"}], shows="Busy.")
    with page.expect_file_chooser() as chosen:
        button(page, "Attach files").click()
    chosen.value.set_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"high at six"})
    expect(page.get_by_role("list", name="Attachments")).to_contain_text("notes.txt")
    send(page, "later")
    queue = page.get_by_role("list", name="Queued messages")
    expect(queue).to_contain_text("notes.txt")
    button(queue, "Edit queued message").click()
    page.get_by_role("textbox", name="Edit queued message").fill("later, changed")
    button(queue, "Save").click()
    expect(queue).to_contain_text("later, changed")
    expect(queue).to_contain_text("notes.txt")
    server.order(open="g")
    expect(answers(page)).to_have_count(2)
    sid = check_transcript(page, server)
    assert [part["type"] for part in server.messages(sid)[2]["parts"]] == ["file", "text"]


def test_escape_right_after_enter_stops(server: Served, open_page: Open) -> None:
    """C2: Escape pressed in the same instant as Enter stops the run, in a new chat and in an open one."""
    page = open_page(server.url)
    for n in range(1, 6):
        message_box(page).fill(HANG)
        message_box(page).press("Enter")
        page.keyboard.press("Escape")
        expect(notice(page)).to_have_count(n)
        sid = check_transcript(page, server)
        assert server.answer(sid)["status"] == "cancelled"


def test_stop_while_sending(server: Served, open_page: Open) -> None:
    """C2: Stop is there while a message is being sent, and the run is stopped when the server answers."""
    page = open_page(f"{server.url}/c/{server.session()}")
    held: list[Route] = []
    page.route("**/runs", lambda route: held.append(route))  # noqa: PLW0108 - Playwright cannot wrap a built-in
    send(page, HANG)
    expect(page.get_by_text("Sending…")).to_be_visible()
    button(page, "Stop").click()
    expect(page.get_by_text("Stopping…")).to_be_visible()
    held[0].continue_()
    expect(notice(page)).to_contain_text("Stopped")
    assert server.answer(check_transcript(page, server))["status"] == "cancelled"


def test_stop_can_be_repeated_after_it_failed(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """C2: a Stop that did not reach the server says so, and can be pressed again."""
    page = open_page(server.url)
    send(page, HANG, shows="Begun.")
    page.route("**/cancel", lambda route: route.abort())
    button(page, "Stop").click()
    expect(page.get_by_role("alert")).to_contain_text("unreachable")
    page.unroute("**/cancel")
    button(page, "Stop").click()
    expect(notice(page)).to_contain_text("Stopped")
    assert server.answer(session_of(page))["status"] == "cancelled"
    drop_network_errors(console_errors)
