"""What can be sent while an answer is active, and questions of the model: by mouse, by keyboard and on a phone."""

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.chat_page import (
    answers,
    axe_violations,
    button,
    check_transcript,
    message_box,
    notice,
    send,
    session_of,
)
from tests.browser.conftest import Open
from tests.browser.sizes import on_desk, on_phone
from tests.http.client import Served

STEPS = [{"say": "one "}, {"meet": "here"}, {"steering": True}, {"say": "two"}]
HANGS = [{"say": "half "}, {"meet": "here"}, {"hang": True}]


def question(**args: Any) -> list[dict[str, Any]]:
    asked = {"question": "Which port should the server use?", "options": ["80", "8080"], **args}
    return [{"say": "I ask. "}, {"call": "q", "name": "ask_user", "args": asked, "asks_user": True}, {"say": "Done."}]


def begin(page: Page, server: Served, script: Any, shows: str) -> None:
    send(page, script, shows=shows)
    server.order(reached="here")


@on_desk
def test_text_is_added_to_the_active_answer(server: Served, open_page: Open, size: tuple[int, int]) -> None:
    """A1, U1: it is listed until the model reads it, then shown where that was, also after a reload."""
    page = open_page(server.url, *size)
    begin(page, server, STEPS, "one")
    box, queue = message_box(page), page.get_by_role("list", name="Queued messages")
    expect(button(page, "Add to answer")).to_have_count(0)
    box.fill("Shorter, please.")
    expect(button(page, "Stop and send")).to_be_visible()
    assert axe_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    button(page, "Add to answer").click()
    expect(box).to_have_value("")
    expect(queue.get_by_role("listitem")).to_contain_text("Adding to answer")
    server.order(open="here")
    added = answers(page).last.get_by_role("group", name="You added")
    expect(added).to_have_text("Shorter, please.")
    expect(queue).to_have_count(0)
    check_transcript(page, server)
    assert axe_violations(page) == []
    page.reload()
    expect(added).to_have_text("Shorter, please.")
    check_transcript(page, server)


def test_by_keyboard(server: Served, open_page: Open) -> None:
    """A3: Enter queues, Alt+Enter adds to the answer, Ctrl+Shift+Enter stops it and sends."""
    page = open_page(server.url)
    begin(page, server, STEPS, "one")
    box, queue = message_box(page), page.get_by_role("list", name="Queued messages").get_by_role("listitem")
    for text, keys, label in (("later", "Enter", "Queued"), ("shorter", "Alt+Enter", "Adding to answer")):
        box.fill(text)
        box.press(keys)
        expect(queue.filter(has_text=text)).to_contain_text(label)
    server.order(open="here")
    expect(answers(page).last).to_contain_text("later")
    expect(answers(page).first.get_by_role("group", name="You added")).to_have_text("shorter")
    begin(page, server, HANGS, "half")
    box.fill("never mind")
    box.press("Control+Shift+Enter")
    expect(answers(page).last).to_contain_text("never mind")
    sid = check_transcript(page, server)
    assert [m["status"] for m in server.messages(sid) if m["role"] == "assistant"][-2:] == ["cancelled", "complete"]
    expect(notice(page)).to_have_text("Stopped")
    expect(notice(page).get_by_role("button")).to_have_count(0)  # the conversation has gone on
    runs = len(server.get(f"/api/runs?session={sid}")["items"])
    page.goto(f"{server.url}/activity")
    shown = page.get_by_role("main").get_by_role("listitem").filter(has=page.locator(f"a[href$='/c/{sid}']"))
    expect(shown).to_have_count(runs - 1)  # what was added to an answer has none of its own


@on_phone
def test_an_answer_is_stopped_for_a_message(server: Served, open_page: Open, size: tuple[int, int]) -> None:
    """A3: what there is of the answer stays, and the message is answered next, before the queue."""
    page = open_page(server.url, *size)
    begin(page, server, HANGS, "half")
    box = message_box(page)
    box.fill("queued")
    button(page, "Send").click()
    expect(page.get_by_role("list", name="Queued messages").get_by_role("listitem")).to_have_count(1)
    box.fill("at once")
    button(page, "Stop and send").click()
    expect(answers(page).last).to_contain_text("queued")
    sid = check_transcript(page, server)
    said = [part["text"] for m in server.messages(sid) if m["role"] == "user" for part in m["parts"]]
    assert said[1:] == ["at once", "queued"]


@on_phone
def test_a_question_of_the_model_is_answered(server: Served, open_page: Open, size: tuple[int, int]) -> None:
    """X5, U1: by a button, by text, from the message box, or not at all; the question is there after a reload, and gone
    once it has its answer."""
    page = open_page(server.url, *size)
    form = page.get_by_role("form", name="Question")
    for answer in ("8080", "the usual one", "9000", None):
        send(page, question())
        expect(form).to_contain_text("Which port should the server use?")
        if answer == "8080":  # later, two tools have the same name
            assert axe_violations(page) == []
        page.reload()
        if answer is None:
            button(form, "Skip").click()
        elif answer == "8080":
            button(form, "8080").click()
        elif answer == "9000":
            expect(message_box(page)).to_have_attribute("placeholder", "Answer the question")
            message_box(page).fill(answer)
            message_box(page).press("Enter")
        else:
            expect(button(form, "Answer")).to_be_disabled()
            form.get_by_role("textbox", name="Another answer").fill(answer)
            button(form, "Answer").click()
        expect(form).to_have_count(0)
        expect(answers(page).last).to_contain_text("Done.")
        tool = next(part for part in server.answer(session_of(page))["parts"] if part["type"] == "tool")
        assert tool["result"] == (answer or "The user did not answer this question. Continue without the answer.")
    expect(answers(page).last).to_contain_text("Skipped")
    expect(answers(page).last).not_to_contain_text("The user did not answer")
    check_transcript(page, server)


def test_a_question_is_answered_by_keyboard(server: Served, open_page: Open) -> None:
    """X5: Enter in the field answers; where only the options count, there is no field."""
    page = open_page(server.url)
    form = page.get_by_role("form", name="Question")
    send(page, question(options=[]))
    rows = page.get_by_role("navigation", name="Chats").get_by_role("listitem")
    expect(rows.get_by_role("img", name="Asks you")).to_be_visible()
    expect(page).to_have_title(re.compile("^Asks you · "))
    assert axe_violations(page) == []
    field = form.get_by_role("textbox", name="Your answer")
    field.fill("443")
    field.press("Enter")
    expect(answers(page).last).to_contain_text("Done.")
    send(page, question(allow_text=False))
    expect(form.get_by_role("textbox")).to_have_count(0)
    button(form, "80").focus()
    page.keyboard.press("Enter")
    expect(form).to_have_count(0)
    expect(answers(page).last).to_contain_text("Done.")
    check_transcript(page, server)
