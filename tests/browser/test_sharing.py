"""Share links and edited answers in the page: by pointer, by keyboard, on desktop and phone."""

import re
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.chat_page import (
    answers,
    axe_violations,
    button,
    check_transcript,
    message_box,
    send,
    session_of,
    wait_idle,
)
from tests.browser.conftest import ConsoleErrors, Open, Start
from tests.browser.sizes import DESK, PHONE, on_desk, on_phone
from tests.http.client import Served

PASSWORD = "correct horse"
ANSWER: list[Any] = [
    {"think": "I look it up."},
    {"call": "c1", "name": "look_up", "args": {"query": "tides"}, "result": "18:40"},
    {"say": "High tide is at **six**."},
]


def open_share_dialog(page: Page) -> Locator:
    button(page.get_by_role("main"), "Options for Tides").click()
    page.get_by_role("menuitem", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share chat")
    expect(dialog).to_be_visible()
    return dialog


def sharing(page: Page) -> Locator:
    return page.get_by_role("region", name="Sharing", exact=True)


def fits(page: Page) -> bool:
    return bool(page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"))


@on_phone
def test_a_chat_is_shared_opened_and_revoked(
    server: Served, browser: Browser, open_page: Open, size: tuple[int, int]
) -> None:
    """The link opens in a browser without scripts and without a login, shows what was chosen and nothing later, and
    stops working when it is revoked in the settings."""
    sid = server.session(title="Tides")
    server.turn(sid, ANSWER)
    page = open_page(f"{server.url}/c/{sid}", *size)
    dialog = open_share_dialog(page)
    expect(dialog).to_contain_text("Anyone who can reach this server can open the link, without logging in.")
    assert axe_violations(page) == []
    dialog.get_by_role("checkbox", name="Tool calls and plans").check()
    dialog.get_by_role("combobox", name="Link expires").select_option("After 30 days")
    button(dialog, "Create link").click()
    field = dialog.get_by_role("textbox", name="Link")
    expect(field).to_be_focused()
    assert axe_violations(page) == []
    link = field.input_value()
    assert re.fullmatch(re.escape(server.url) + r"/share/[\w-]{43}", link)
    button(dialog, "Copy link").click()
    expect(dialog.get_by_role("status")).to_contain_text("Copied.")
    dialog.get_by_role("link", name="Settings → Sharing").click()
    item = sharing(page).get_by_role("listitem").filter(has_text="Tides")
    expect(item).to_contain_text(re.compile(r"Text · .* · With tool calls · Created .* · Expires .* · Not opened yet"))
    assert axe_violations(page) == []
    assert fits(page)
    server.turn(sid, [{"say": "LATER"}])
    stranger = browser.new_context(java_script_enabled=False, viewport={"width": size[0], "height": size[1]})
    shared = stranger.new_page()
    shared.goto(link)
    expect(shared.get_by_role("heading", name="Tides")).to_be_visible()
    expect(shared.locator("strong", has_text="six")).to_be_visible()
    shared.get_by_text("look_up (done)").click()
    expect(shared.get_by_text("18:40", exact=True)).to_be_visible()
    expect(shared.get_by_text("I look it up.", exact=True)).to_have_count(0)
    expect(shared.get_by_text("LATER")).to_have_count(0)
    page.reload()
    expect(item).to_contain_text("Last opened")
    button(item, "Revoke: Tides").click()
    button(page.get_by_role("dialog"), "Revoke").click()
    expect(sharing(page)).to_contain_text("No shared links")
    shared.reload()
    expect(shared.get_by_role("heading", name="Link not available")).to_be_visible()
    stranger.close()


def test_sharing_by_keyboard(server: Served, open_page: Open) -> None:
    """From the menu to the link without a pointer; Escape closes and gives back the focus."""
    sid = server.session(title="Tides")
    server.turn(sid, ANSWER)
    page = open_page(f"{server.url}/c/{sid}", *DESK)
    menu = button(page.get_by_role("main"), "Options for Tides")
    menu.focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Share").press("Enter")
    dialog = page.get_by_role("dialog", name="Share chat")
    dialog.get_by_role("radio", name="Text").focus()
    page.keyboard.press("ArrowRight")
    expect(dialog.get_by_role("radio", name="Recording")).to_be_checked()
    page.keyboard.press("Tab")
    expect(dialog.get_by_role("checkbox", name="Reasoning")).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("textbox", name="Link")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    (share,) = server.get("/api/shares")["items"]
    assert (share["kind"], share["reasoning"], share["tools"]) == ("recording", True, False)


def test_a_recording_is_replayed_without_scripts(server: Served, browser: Browser, open_page: Open) -> None:
    """From the flight recorder: the timeline of one run. Replay hides what was not written yet and shows it in time;
    the page has an origin of its own."""
    sid = server.session(title="Tides")
    server.turn(sid, [{"say": "another"}])
    server.turn(sid, [{"say": "one "}, {"say": "two", "after": 1.0}])
    run = server.messages(sid)[-1]["run_id"]
    page = open_page(f"{server.url}/runs/{run}", *PHONE)
    button(page, "Share").click()
    dialog = page.get_by_role("dialog", name="Share recording")
    assert axe_violations(page) == []
    button(dialog, "Create link").click()
    link = dialog.get_by_role("textbox", name="Link").input_value()
    stranger = browser.new_context(viewport={"width": PHONE[0], "height": PHONE[1]})
    shared = stranger.new_page()
    shared.goto(link)
    expect(shared.get_by_text("another")).to_have_count(0)
    expect(shared.get_by_text("one two").first).to_be_visible()
    assert fits(shared)
    late = shared.locator(".written .at").last
    shared.get_by_role("checkbox", name="Replay").focus()
    shared.keyboard.press("Space")
    expect(late).to_have_css("opacity", "0")
    expect(late).to_have_css("opacity", "1")
    shared.keyboard.press("Space")
    expect(shared.locator(".rendered").first).to_be_visible()
    assert shared.evaluate("() => origin") == "null"
    plain = stranger.new_page()  # axe needs scripts, which the page itself does not allow
    plain.set_content(server.http.get(link).text)
    assert axe_violations(plain) == []
    stranger.close()


def test_deleting_a_chat_says_that_its_links_end(server: Served, open_page: Open) -> None:
    sid = server.session(title="Tides")
    server.turn(sid, ANSWER)
    page = open_page(f"{server.url}/c/{sid}", *DESK)
    button(page.get_by_role("main"), "Options for Tides").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("shared links to it stop working")


def test_a_refused_share_says_why(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """The dialog stays, with what was chosen."""
    console_errors.expect("Failed to load resource")
    sid = server.session(title="Tides")
    page = open_page(f"{server.url}/c/{sid}", *DESK)
    dialog = open_share_dialog(page)
    dialog.get_by_role("checkbox", name="Reasoning").check()
    button(dialog, "Create link").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Cannot share the chat: it has no messages yet.")
    expect(dialog.get_by_role("checkbox", name="Reasoning")).to_be_checked()


def test_links_below_a_path_and_with_a_password(start: Start, browser: Browser, open_page: Open) -> None:
    """The address has the path that a proxy publishes; a stranger gets the page, and the login everywhere else."""
    server = start(root_path="/holdfast", password=PASSWORD)
    server.post("/api/login", {"password": PASSWORD}, 204)
    server.post("/api/setup/done", expect=204)
    sid = server.session(title="Tides")
    server.turn(sid, ANSWER)
    page = open_page(f"{server.url}/login", *DESK)
    page.get_by_label("Password").fill(PASSWORD)
    button(page, "Log in").click()
    page.wait_for_url(f"{server.url}/")
    page.goto(f"{server.url}/c/{sid}")
    dialog = open_share_dialog(page)
    button(dialog, "Create link").click()
    link = dialog.get_by_role("textbox", name="Link").input_value()
    assert link.startswith(f"{server.url}/share/")
    stranger = browser.new_context()
    shared = stranger.new_page()
    shared.goto(link)
    expect(shared.get_by_role("heading", name="Tides")).to_be_visible()
    shared.goto(f"{server.url}/c/{sid}")
    expect(shared.get_by_label("Password")).to_be_visible()
    stranger.close()


# ------------------------------------------------------------------------------------------------ edited answers


@on_desk
def test_an_answer_is_edited_as_a_version(server: Served, open_page: Open, size: tuple[int, int]) -> None:
    """It is marked, follows the tool calls, and leads back to the original, which can be edited from there again."""
    page = open_page(server.url, *size)
    send(page, [*ANSWER[:2], {"say": "High tide is at six."}], shows="six")
    wait_idle(page)
    sid = session_of(page)
    answer = answers(page).last
    button(answer, "Edit answer").click()
    editor = page.get_by_role("textbox", name="Edit answer")
    expect(editor).to_be_focused()
    expect(editor).to_have_value("High tide is at six.")
    assert axe_violations(page) == []
    editor.fill("High tide is at seven.")
    button(page, "Save").click()
    expect(answer).to_contain_text("seven")
    expect(answer).to_contain_text("Edited")
    expect(answer.get_by_role("region", name="Tool look_up")).to_be_visible()
    expect(answer.get_by_role("region", name="Reasoning")).to_have_count(0)
    check_transcript(page, server)
    assert server.messages(sid)[-1]["reason"] == "edited"
    button(answer, "Previous version").click()
    expect(answer).to_contain_text("six")
    expect(answer).not_to_contain_text("Edited")
    button(answer, "Next version").click()
    expect(answer).to_contain_text("seven")
    assert axe_violations(page) == []
    assert fits(page)


def test_an_edit_of_an_answer_by_keyboard(server: Served, open_page: Open) -> None:
    """Escape keeps what was typed, Cancel discards it, Enter saves; an unchanged text adds no version."""
    page = open_page(server.url, *DESK)
    send(page, [{"say": "six"}], shows="six")
    wait_idle(page)
    sid, edit = session_of(page), button(answers(page).last, "Edit answer")
    editor = page.get_by_role("textbox", name="Edit answer")
    edit.focus()
    page.keyboard.press("Enter")
    editor.press_sequentially("teen")
    page.keyboard.press("Escape")
    expect(answers(page).last).to_contain_text("six")
    edit.click()
    expect(editor).to_have_value("sixteen")
    button(page, "Cancel").click()
    edit.click()
    expect(editor).to_have_value("six")
    page.keyboard.press("Enter")
    expect(editor).to_have_count(0)
    assert len(server.messages(sid)[-1]["siblings"]) == 1
    edit.click()
    editor.press_sequentially("ty")
    page.keyboard.press("Enter")
    expect(answers(page).last).to_contain_text("sixty")
    expect(message_box(page)).to_be_focused()
    assert len(server.messages(sid)[-1]["siblings"]) == 2


def test_an_edit_above_leads_back_to_what_followed(server: Served, open_page: Open) -> None:
    """Later messages stay in the original version; the model of the next turn is shown the edited text."""
    page = open_page(server.url, *DESK)
    send(page, [{"say": "six"}], shows="six")
    wait_idle(page)
    send(page, [{"say": "later"}], shows="later")
    wait_idle(page)
    button(answers(page).first, "Edit answer").click()
    page.get_by_role("textbox", name="Edit answer").fill("seven")
    button(page, "Save").click()
    expect(answers(page)).to_have_count(1)
    expect(page.get_by_text("Later messages are in the previous version")).to_be_visible()
    button(page, "Show").click()
    expect(answers(page).last).to_contain_text("later")
    check_transcript(page, server)
