"""A conversation in the browser: send, stream, stop, go on, answer, edit."""

import json
import re

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.see import answers, button, finished, message_box, same, send, session_of
from tests.http.client import Served


def test_send_and_stream(server: Served, open_page: Open) -> None:
    """U1: text appears while the run goes on, and at the end the page shows what the API has."""
    page = open_page(server.url)
    send(page, [{"think": "Let me see."}, {"say": "First words. "}, {"meet": "g"}, {"say": "Last words."}])
    expect(answers(page)).to_contain_text("First words.")
    assert "Last words." not in answers(page).inner_text()
    sid = session_of(page)
    expect(button(page, "Stop")).to_be_visible()
    server.order(open="g")
    expect(answers(page)).to_contain_text("Last words.")
    finished(page)
    same(page, server, sid)
    expect(message_box(page)).to_have_value("")


def test_a_send_is_there_once(server: Served, open_page: Open) -> None:
    """A2: at no instant are there two copies of a message, from the click to the end of its answer."""
    page = open_page(server.url)
    page.evaluate("""() => {
        window.most = 0;
        const look = () => {
            window.most = Math.max(window.most, document.querySelectorAll("article[aria-label=You]").length);
            requestAnimationFrame(look);
        };
        look();
    }""")
    send(page, "just once")
    expect(answers(page)).to_contain_text("just once")
    finished(page)
    assert page.evaluate("window.most") == 1
    same(page, server, session_of(page))


def test_stop_keeps_what_was_said(server: Served, open_page: Open) -> None:
    """C2, C6: Stop ends the run; reasoning, text and one notice are there."""
    page = open_page(server.url)
    send(page, [{"think": "Hm."}, {"say": "As far as this"}, {"hang": True}])
    expect(answers(page)).to_contain_text("As far as this")
    button(page, "Stop").click()
    expect(answers(page).get_by_role("note", name="Notice")).to_contain_text("Stopped")
    finished(page)
    sid = session_of(page)
    same(page, server, sid)
    assert server.answer(sid)["status"] == "cancelled"
    expect(answers(page).get_by_role("region", name="Reasoning")).to_have_count(1)


def test_continue_after_a_failure(server: Served, open_page: Open) -> None:
    """E1, X5: a failed answer shows its reason; Continue goes on from there as a sibling."""
    page = open_page(server.url)
    sid = server.session()
    server.events(server.send(sid, [{"say": "Half. "}, {"fail": ["provider", "The provider is away."]}])["run"]["id"])
    page.goto(f"{server.url}/c/{sid}")
    expect(answers(page).get_by_role("note", name="Notice")).to_contain_text("The provider is away.")
    same(page, server, sid)
    button(page, "Continue").click()
    expect(page.get_by_role("group", name="Branches")).to_contain_text("2/2")
    finished(page)
    same(page, server, sid)


def test_retry_makes_a_branch(server: Served, open_page: Open) -> None:
    """O2: Retry answers again beside the first answer, and both can be shown."""
    page = open_page(server.url)
    send(page, "say it back")
    finished(page)
    expect(answers(page)).to_contain_text("say it back")
    button(page, "Retry").click()
    expect(page.get_by_role("group", name="Branches")).to_contain_text("2/2")
    finished(page)
    same(page, server, session_of(page))


def test_an_approval(server: Served, open_page: Open) -> None:
    """A tool that asks is answered on the page, also after a reload, and runs once."""
    page = open_page(server.url)
    send(page, [{"call": "c1", "name": "shell", "args": {"command": "ls"}, "asks": True}, {"say": "Listed."}])
    card = page.get_by_role("group", name="Approval")
    expect(card).to_contain_text("shell")
    page.reload()
    expect(card).to_contain_text('"command": "ls"')
    button(card, "Allow once").click()
    expect(answers(page)).to_contain_text("Listed.")
    finished(page)
    expect(card).to_have_count(0)
    same(page, server, session_of(page))
    assert server.effects == ["c1"]


def test_edit_and_switch_branch(server: Served, open_page: Open) -> None:
    """O2: an edited message is a branch of its own; ‹1/2› leads back to the first."""
    page = open_page(server.url)
    send(page, "first version")
    finished(page)
    expect(answers(page)).to_contain_text("first version")
    sid = session_of(page)
    button(page, "Edit").click()
    box = page.get_by_role("textbox", name="Edit message")
    box.fill("second version")
    box.press("Enter")
    expect(answers(page)).to_contain_text("second version")
    finished(page)
    same(page, server, sid)
    button(page.get_by_role("article", name="You"), "Previous branch").click()
    expect(answers(page)).to_contain_text("first version")
    same(page, server, sid)


def test_undo_and_redo(server: Served, open_page: Open) -> None:
    """O2: Undo takes the last turn off the page, Redo puts it back."""
    page = open_page(server.url)
    send(page, "one turn")
    finished(page)
    expect(answers(page)).to_contain_text("one turn")
    sid = session_of(page)
    button(page, "Undo").click()
    expect(page.get_by_role("article")).to_have_count(0)
    button(page, "Redo").click()
    expect(answers(page)).to_contain_text("one turn")
    same(page, server, sid)


def test_the_queue_is_shown_and_editable(server: Served, open_page: Open) -> None:
    """A3: what is sent while a run goes on waits visibly, can be changed, and runs afterwards."""
    page = open_page(server.url)
    send(page, [{"say": "Busy. "}, {"meet": "g"}])
    expect(answers(page)).to_contain_text("Busy.")
    send(page, "later")
    queue = page.get_by_role("list", name="Queued messages")
    expect(queue).to_contain_text("later")
    button(queue, "Edit queued message").click()
    page.get_by_role("textbox", name="Edit queued message").fill("later, changed")
    button(queue, "Save").click()
    expect(queue).to_contain_text("later, changed")
    server.order(open="g")
    expect(answers(page)).to_have_count(2)
    expect(answers(page).last).to_contain_text("later, changed")
    finished(page)
    expect(queue).to_have_count(0)
    same(page, server, session_of(page))


def test_a_draft_is_kept(server: Served, open_page: Open) -> None:
    """U5: text typed and not sent survives a refresh, per session."""
    page = open_page(server.url)
    message_box(page).fill("for a new chat")
    sid = server.session(title="Other")
    page.get_by_role("navigation", name="Sessions").get_by_role("link", name="Other").click()
    page.wait_for_url(re.compile(sid))
    message_box(page).fill("half a sentence")
    page.reload()
    expect(message_box(page)).to_have_value("half a sentence")
    button(page, "New chat").click()
    expect(message_box(page)).to_have_value("for a new chat")


def test_a_new_chat_says_which_one_it_follows(server: Served, open_page: Open) -> None:
    """U4: the session begun after another names it."""
    page = open_page(server.url)
    send(page, "the first")
    finished(page)
    first = session_of(page)
    button(page, "New chat").click()
    expect(page.get_by_role("article")).to_have_count(0)
    send(page, "the second")
    expect(answers(page)).to_contain_text("the second")
    second = session_of(page)
    assert second != first
    assert server.get(f"/api/sessions/{second}")["previous_session_id"] == first


def test_files_are_attached(server: Served, open_page: Open) -> None:
    """A1: a file goes up when it is chosen and is in the message that is sent."""
    page = open_page(server.url)
    with page.expect_file_chooser() as chosen:
        button(page, "Attach files").click()
    chosen.value.set_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"high at six"})
    expect(page.get_by_role("list", name="Attachments")).to_contain_text("notes.txt")
    send(page, "see the file")
    expect(page.get_by_role("article", name="You").get_by_role("link")).to_contain_text("notes.txt")
    expect(answers(page)).to_contain_text("see the file")  # answered, and not only sent
    finished(page)
    sid = session_of(page)
    assert [part["type"] for part in server.messages(sid)[0]["parts"]] == ["file", "text"]


def test_keyboard_only(server: Served, open_page: Open) -> None:
    """Everything in a turn can be done with keys: write, send, reach Edit, change, send, stop."""
    page = open_page(server.url)
    expect(message_box(page)).to_be_focused()
    page.keyboard.type("with keys")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("alone")
    page.keyboard.press("Enter")
    expect(answers(page)).to_contain_text("with keys")
    finished(page)
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
    expect(page.get_by_role("note", name="Notice")).to_contain_text("Stopped")
    finished(page)
    same(page, server, session_of(page))


def test_cards_say_how_long_and_what(server: Served, open_page: Open) -> None:
    """Reasoning says how long it took, also after a reload; a tool's card has its name, arguments, output, result and
    time; an edit is shown as what it changes."""
    page = open_page(server.url)
    edit = {"path": "a.py", "old_string": "one\ntwo", "new_string": "one\nthree"}
    send(
        page,
        [
            {"think": "Let me "},
            {"think": "see.", "after": 0.3},
            {
                "call": "c1",
                "name": "slow",
                "args": {"command": "make"},
                "output": ["half "],
                "takes": 0.2,
                "result": "ok",
            },
            {"call": "c2", "name": "edit_file", "args": edit, "result": "1 change"},
            {"say": "Done."},
        ],
    )
    expect(answers(page)).to_contain_text("Done.")
    finished(page)
    page.reload()
    expect(page.get_by_role("region", name="Reasoning")).to_contain_text(re.compile(r"Thought for \d+ ms"))
    slow = page.get_by_role("region", name="Tool slow")
    expect(slow).to_contain_text(re.compile(r"make.*done · 200 ms"))
    slow.get_by_role("button").click()
    for said in ('"command": "make"', "half", "ok"):
        expect(slow).to_contain_text(said)
    changed = page.get_by_role("region", name="Tool edit_file")
    changed.get_by_role("button").click()
    expect(changed.locator(".gone")).to_have_text("− two\n")
    expect(changed.locator(".new")).to_have_text("+ three\n")
    same(page, server, session_of(page))


def test_slash_commands(server: Served, open_page: Open) -> None:
    """A slash lists what can be done, letters narrow it down, and Enter or a click does it."""
    page = open_page(server.url)
    send(page, "once")
    expect(answers(page)).to_contain_text("once")
    finished(page)
    message_box(page).press("/")
    commands = page.get_by_role("listbox", name="Commands")
    expect(commands.get_by_role("option")).to_have_count(8)
    page.keyboard.type("re")
    expect(commands.get_by_role("option")).to_have_count(2)
    commands.get_by_role("option", name="/retry").click()
    expect(page.get_by_role("group", name="Branches")).to_contain_text("2/2")
    finished(page)
    expect(message_box(page)).to_have_value("")
    same(page, server, session_of(page))
