"""A conversation in the browser: send, stream, stop, continue, approve, edit, queue."""

import json
import re

from playwright.sync_api import expect

from tests.browser.chat_page import (
    answers,
    button,
    check_transcript,
    message_box,
    notice,
    record_most,
    send,
    session_of,
    wait_idle,
)
from tests.browser.conftest import ConsoleErrors, Open
from tests.browser.test_failures import drop_network_errors
from tests.http.client import Served


def test_send_and_stream(server: Served, open_page: Open) -> None:
    """U1: text appears while the run goes on, and at the end the page shows what the API has."""
    page = open_page(server.url)
    script = [{"think": "Let me see."}, {"say": "First words. "}, {"meet": "g"}, {"say": "Last words."}]
    send(page, script, shows="First words.")
    assert "Last words." not in answers(page).inner_text()
    expect(button(page, "Stop")).to_be_visible()
    server.order(open="g")
    expect(answers(page)).to_contain_text("Last words.")
    check_transcript(page, server)
    expect(message_box(page)).to_have_value("")


def test_a_sent_message_is_shown_once(server: Served, open_page: Open) -> None:
    """A2: at no instant are there two copies of a message, from the click to the end of its answer."""
    page = open_page(server.url)
    record_most(page, "article[aria-label=You]")
    send(page, "just once", shows="just once")
    check_transcript(page, server)
    assert page.evaluate("window.most") == 1


def test_stop_keeps_partial_output(server: Served, open_page: Open) -> None:
    """C2, C6: Stop ends the run; reasoning, text and one notice are there."""
    page = open_page(server.url)
    send(page, [{"think": "Hm."}, {"say": "As far as this"}, {"hang": True}], shows="As far as this")
    button(page, "Stop").click()
    expect(notice(page)).to_contain_text("Stopped")
    sid = check_transcript(page, server)
    assert server.answer(sid)["status"] == "cancelled"
    expect(answers(page).get_by_role("region", name="Reasoning")).to_have_count(1)


def test_a_branch_of_an_incomplete_answer_blames_no_restart(server: Served, open_page: Open) -> None:
    """Copied and imported answers have no run here: what cut them off happened elsewhere."""
    sid = server.session(title="Cut off")
    server.turn(sid, "first")
    exported = server.http.get(f"/api/sessions/{sid}/export").text
    assert exported.count('"complete"') == 2
    head, _, tail = exported.rpartition('"complete"')
    server.call("DELETE", f"/api/sessions/{sid}", expect=204)
    headers = {"Content-Type": "application/x-ndjson"}
    (imported,) = server.http.post("/api/import", content=f'{head}"interrupted"{tail}', headers=headers).json()["items"]
    page = open_page(f"{server.url}/c/{imported['session_id']}")
    expect(notice(page)).to_contain_text("Incomplete answer")


def test_continue_after_a_failure(server: Served, open_page: Open) -> None:
    """E1, X5: a failed answer shows its reason; Continue goes on from there as a sibling."""
    sid = server.session()
    server.events(server.send(sid, [{"say": "Half. "}, {"fail": ["provider", "The provider is away."]}])["run"]["id"])
    page = open_page(f"{server.url}/c/{sid}")
    expect(notice(page)).to_contain_text("The provider is away.")
    check_transcript(page, server)
    button(page, "Continue").click()
    expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    check_transcript(page, server)


def test_an_approval(server: Served, open_page: Open) -> None:
    """A tool that needs approval is allowed on the page, also after a reload, and runs once."""
    page = open_page(server.url)
    send(page, [{"call": "c1", "name": "shell", "args": {"command": "ls"}, "asks": True}, {"say": "Listed."}])
    card = page.get_by_role("group", name="Approval")
    expect(card).to_contain_text("Allow shell to run?")
    rows = page.get_by_role("navigation", name="Chats").get_by_role("listitem")
    expect(rows.get_by_role("img", name="Needs approval")).to_be_visible()
    expect(page).to_have_title(re.compile("^Needs approval · "))
    page.reload()
    expect(card.locator("pre")).to_have_text("ls")
    button(card, "Allow once").click()
    expect(message_box(page)).to_be_focused()
    expect(answers(page)).to_contain_text("Listed.")
    check_transcript(page, server)
    expect(card).to_have_count(0)
    assert server.effects == ["c1"]


def test_versions_of_a_message_and_undo(server: Served, open_page: Open) -> None:
    """O2: Regenerate and Edit add a version, which can be switched; Undo takes the last turn away, Redo restores it."""
    page = open_page(server.url)
    send(page, "first version", shows="first version")
    wait_idle(page)
    button(page, "Regenerate").click()
    expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    check_transcript(page, server)
    button(page, "Edit").click()
    box = page.get_by_role("textbox", name="Edit message")
    box.fill("second version")
    box.press("Escape")
    page.reload()
    expect(box).to_have_value("second version")  # a change that is left is not lost
    expect(message_box(page)).to_be_focused()
    box.press("Enter")
    expect(answers(page)).to_contain_text("second version")
    check_transcript(page, server)
    button(page.get_by_role("article", name="You"), "Previous version").click()
    expect(answers(page)).to_contain_text("first version")
    check_transcript(page, server)
    expect(button(page.get_by_role("article", name="You"), "Next version")).to_be_focused()
    button(page, "Undo last message").click()
    expect(page.get_by_role("article")).to_have_count(0)
    expect(page.get_by_text("All messages were undone")).to_be_visible()
    expect(message_box(page)).to_be_focused()  # the button is disabled
    confirmation = page.get_by_role("status", name="Confirmation")
    expect(confirmation).to_contain_text("Message undone")
    button(confirmation, "Redo").click()
    expect(answers(page)).to_contain_text("first version")
    check_transcript(page, server)
    for outdate in (button(page, "Redo"), button(page, "New chat")):
        button(page, "Undo last message").click()
        expect(confirmation).to_contain_text("Message undone")
        outdate.first.click()
        expect(confirmation).to_have_text("")  # its Redo means nothing any more


def test_a_message_of_another_version_is_shown_on_demand(server: Served, open_page: Open) -> None:
    """A link of the search leads to a version that is not shown: it says so, and switches to it when it is asked."""
    page = open_page(server.url)
    send(page, "first version", shows="first version")
    wait_idle(page)
    sid = session_of(page)
    first = server.answer(sid)["id"]
    button(page, "Edit").click()
    page.get_by_role("textbox", name="Edit message").fill("second version")
    page.keyboard.press("Enter")
    expect(answers(page)).to_contain_text("second version")
    wait_idle(page)
    page.goto(f"{server.url}/c/{sid}#{first}")
    page.reload()
    found = page.get_by_role("status").filter(has_text="Found in another version")
    button(found, "Show").click()
    expect(answers(page)).to_contain_text("first version")
    expect(found).to_have_count(0)
    assert server.answer(sid)["id"] == first


def test_the_queue_is_shown_and_editable(server: Served, open_page: Open) -> None:
    """A3: what is sent while a run goes on waits visibly, can be changed, and runs afterwards. Escape closes an editor
    or the list of commands without stopping the run, and an edit that comes too late moves to the message box."""
    page = open_page(server.url)
    send(page, [{"say": "Busy. "}, {"meet": "g"}], shows="Busy.")
    send(page, "later")
    queue = page.get_by_role("list", name="Queued messages")
    expect(queue).to_contain_text("later")
    button(queue, "Edit queued message").click()
    page.get_by_role("textbox", name="Edit queued message").fill("later, changed")
    button(queue, "Save").click()
    expect(queue).to_contain_text("later, changed")
    expect(message_box(page)).to_be_focused()
    send(page, "not wanted")
    button(queue.get_by_role("listitem").filter(has_text="not wanted"), "Remove from queue").click()
    expect(queue.get_by_role("listitem")).to_have_count(1)
    button(page.get_by_role("status", name="Confirmation"), "Undo").click()
    expect(queue).to_contain_text("not wanted")
    button(queue.get_by_role("listitem").filter(has_text="not wanted"), "Remove from queue").click()
    expect(queue.get_by_role("listitem")).to_have_count(1)
    button(queue, "Edit queued message").click()
    page.get_by_role("textbox", name="Edit queued message").fill("too late")
    page.keyboard.press("Escape")
    expect(page.get_by_role("textbox", name="Edit queued message")).to_have_count(0)
    message_box(page).press("/")
    expect(page.get_by_role("listbox", name="Commands")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox", name="Commands")).to_have_count(0)
    message_box(page).fill("typed")
    button(queue, "Edit queued message").click()
    expect(page.get_by_role("textbox", name="Edit queued message")).to_have_value("too late")
    server.order(open="g")
    expect(answers(page)).to_have_count(2)
    expect(answers(page).last).to_contain_text("later, changed")
    sid = check_transcript(page, server)
    assert {message["status"] for message in server.messages(sid)} == {"complete"}
    expect(queue).to_have_count(0)
    expect(message_box(page)).to_have_value("typed\n\ntoo late")
    expect(page.get_by_role("alert")).to_contain_text("no longer queued")


def test_a_draft_is_kept(server: Served, open_page: Open) -> None:
    """U5: text typed and not sent survives a reload, per session."""
    page = open_page(server.url)
    message_box(page).fill("for a new chat")
    sid = server.session(title="Other")
    page.get_by_role("navigation", name="Chats").get_by_role("link", name="Other").click()
    page.wait_for_url(re.compile(sid))
    message_box(page).fill("half a sentence")
    page.reload()
    expect(message_box(page)).to_have_value("half a sentence")
    button(page, "New chat").click()
    expect(message_box(page)).to_have_value("for a new chat")


def test_a_new_chat_names_its_predecessor(server: Served, open_page: Open) -> None:
    """U4: the session begun after another names it."""
    page = open_page(server.url)
    send(page, "the first", shows="the first")
    first = check_transcript(page, server)
    button(page, "New chat").click()
    expect(page.get_by_role("article")).to_have_count(0)
    send(page, "the second", shows="the second")
    second = check_transcript(page, server)
    assert second != first
    assert server.get(f"/api/sessions/{second}")["previous_session_id"] == first


def test_a_session_of_an_api_client_has_a_badge_and_can_be_continued(server: Served, open_page: Open) -> None:
    """A chat of an OpenAI client is in the list with its badge, and can be continued on the page."""
    body = {"model": "agent:chat", "messages": [{"role": "user", "content": '[{"say": "By a program."}]'}]}
    sid = server.http.post("/v1/chat/completions", json=body).headers["holdfast-session"]
    page = open_page(server.url)
    row = page.get_by_role("navigation", name="Chats").get_by_role("listitem").first
    expect(row.get_by_text("API", exact=True)).to_be_visible()
    page.goto(f"{server.url}/c/{sid}")
    expect(page.get_by_role("main").get_by_text("API", exact=True)).to_be_visible()
    send(page, [{"say": "By a person."}], shows="By a person.")
    check_transcript(page, server)


def test_files_are_attached(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A1: a file goes up when it is chosen, again if that failed, and is in the message that is sent, not in the
    next."""
    page = open_page(server.url)
    page.route("**/api/files", lambda route: route.abort())
    with page.expect_file_chooser() as chosen:
        button(page, "Attach files").click()
    chosen.value.set_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"high at six"})
    expect(page.get_by_role("list", name="Attachments").get_by_role("alert")).to_contain_text("unreachable")
    page.unroute("**/api/files")
    button(page, "Retry notes.txt").click()
    expect(button(page, "Remove notes.txt")).to_be_visible()
    drop_network_errors(console_errors)
    send(page, "see the file", shows="see the file")
    expect(page.get_by_role("article", name="You").get_by_role("link")).to_contain_text("notes.txt")
    sid = check_transcript(page, server)
    assert [part["type"] for part in server.messages(sid)[0]["parts"]] == ["file", "text"]
    button(page, "New chat").click()
    expect(page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    expect(message_box(page)).to_have_value("")  # what was sent is not the draft of the next chat
    expect(page.get_by_role("list", name="Attachments")).to_have_count(0)


def test_keyboard_only(server: Served, open_page: Open) -> None:
    """Everything in a turn can be done with keys: write, send, reach Edit, change, send, stop."""
    page = open_page(server.url)
    expect(message_box(page)).to_be_focused()
    page.keyboard.type("with keys")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("alone")
    page.keyboard.press("Enter")
    expect(answers(page)).to_contain_text("with keys")
    wait_idle(page)
    page.keyboard.press("Tab")  # from the box on, around to the message's own buttons
    for _ in range(60):
        name = page.evaluate("document.activeElement.getAttribute('aria-label')")
        if name == "Edit":
            break
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Edit"
    page.keyboard.press("Enter")
    page.keyboard.press("Control+A")
    page.keyboard.type(json.dumps([{"say": "edited"}, {"hang": True}]))
    page.keyboard.press("Enter")
    expect(answers(page)).to_contain_text("edited")
    message_box(page).focus()
    page.keyboard.press("Escape")
    expect(notice(page)).to_contain_text("Stopped")
    check_transcript(page, server)
    expect(message_box(page)).to_be_focused()


def test_reasoning_and_tool_cards(server: Served, open_page: Open) -> None:
    """Reasoning shows its duration, also after a reload; a tool's card shows arguments, output, result and duration; an
    edit is shown as a diff."""
    page = open_page(server.url)
    make = {
        "call": "c1",
        "name": "slow",
        "args": {"command": "make"},
        "output": ["half ", "line\n" * 40],
        "takes": 0.2,
        "result": "ok",
    }
    edit = {"path": "a.py", "old_string": "one\ntwo", "new_string": "one\nthree"}
    change = {"call": "c2", "name": "edit_file", "args": edit, "result": "1 change"}
    send(page, [{"think": "Let me "}, {"think": "see.", "after": 0.3}, make, change, {"say": "Done."}], shows="Done.")
    wait_idle(page)
    page.reload()
    expect(page.get_by_role("region", name="Reasoning")).to_contain_text(re.compile(r"Thought for [\d.]+ m?s"))
    slow = page.get_by_role("region", name="Tool slow")
    expect(slow).to_contain_text(re.compile(r"make.*Done · 200 ms"))
    header = slow.get_by_role("button")
    before = header.bounding_box()
    header.click()
    for text in ("make", "half", "ok"):
        expect(slow).to_contain_text(text)
    assert header.bounding_box() == before  # at the end of a chat too, the header that was clicked stays in place
    changed = page.get_by_role("region", name="Tool edit_file")
    changed.get_by_role("button").click()
    expect(changed).to_contain_text(re.compile(r"  one\s+− two\s+\+ three"))
    check_transcript(page, server)


def test_slash_commands(server: Served, open_page: Open) -> None:
    """A slash lists what can be done, letters narrow it down, and Enter or a click does it."""
    page = open_page(server.url)
    send(page, "once", shows="once")
    wait_idle(page)
    message_box(page).press("/")
    commands = page.get_by_role("listbox", name="Commands")
    expect(commands.get_by_role("option")).to_have_count(6)  # nothing runs, and there is nothing to redo
    page.keyboard.type("re")
    expect(commands.get_by_role("option")).to_have_count(1)
    commands.get_by_role("option", name="/regenerate").click()
    expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    check_transcript(page, server)
    expect(message_box(page)).to_have_value("")
