"""Small conveniences of a chat: in the message box, while reading, and in the list of chats."""

import base64
import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, expect

from tests.browser import seed
from tests.browser.chat_page import answers, axe_violations, button, check_transcript, message_box, send, wait_idle
from tests.browser.conftest import ConsoleErrors, Open, Start
from tests.http.client import Served

_PASTE = """text => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    document.activeElement.dispatchEvent(
        new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def test_long_text_that_is_pasted_is_attached(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A long paste becomes a text file, or text again on demand; if it cannot be stored, it is in the message box."""
    page = open_page(server.url)
    box = message_box(page)
    box.fill("before after")
    box.evaluate("box => box.setSelectionRange(7, 7)")
    long = "a line of a log\n" * 120
    attached = page.get_by_role("list", name="Attachments").get_by_role("listitem")
    page.evaluate(_PASTE, long)
    expect(attached).to_contain_text("Pasted text.txt")
    page.evaluate(_PASTE, long)
    expect(attached).to_have_count(2)
    button(page, "Insert as text").click()
    expect(attached).to_have_count(1)
    expect(box).to_have_value(f"before {long}after")
    box.fill("see the log")
    page.route("**/api/files", lambda route: route.abort())
    page.evaluate(_PASTE, long)
    expect(box).to_have_value(f"see the log{long}")
    console_errors.expect("Failed to load resource")
    page.unroute("**/api/files")
    send(page, "see the log", shows="see the log")
    sid = check_transcript(page, server)
    file, text = server.messages(sid)[0]["parts"]
    assert (file["name"], file["size"], text["text"]) == ("Pasted text.txt", len(long), "see the log")


def test_the_last_message_is_edited_by_arrow_up(server: Served, open_page: Open) -> None:
    """ArrowUp in the empty message box edits what was sent or queued last; Escape goes back to the box."""
    page = open_page(server.url)
    send(page, "first", shows="first")
    wait_idle(page)
    send(page, "secnd", shows="secnd")
    wait_idle(page)
    box, editor = message_box(page), page.get_by_role("textbox", name="Edit message")
    box.fill("typed")
    box.press("ArrowUp")
    expect(editor).to_have_count(0)
    box.fill("")
    box.press("ArrowUp")
    expect(editor).to_be_focused()
    expect(editor).to_have_value("secnd")
    editor.press("Escape")
    expect(box).to_be_focused()
    box.press("ArrowUp")
    editor.fill("second")
    editor.press("Enter")
    expect(page.get_by_role("article", name="Assistant").last).to_contain_text("second")
    check_transcript(page, server)
    send(page, [{"say": "Busy. "}, {"meet": "g"}], shows="Busy.")
    send(page, "queued")
    expect(page.get_by_role("list", name="Queued messages")).to_contain_text("queued")
    box.press("ArrowUp")
    expect(page.get_by_role("textbox", name="Edit queued message")).to_be_focused()
    server.order(open="g")


def test_a_deleted_chat_can_be_brought_back(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A deleted chat is hidden in every tab and can be brought back with its draft; leaving the page deletes it."""
    sid = server.session(title="Precious")
    page, other = open_page(f"{server.url}/c/{sid}"), open_page(server.url)
    message_box(page).fill("half a thought")
    row = page.get_by_role("navigation", name="Chats").get_by_role("link", name="Precious")
    elsewhere = other.get_by_role("navigation", name="Chats").get_by_role("link", name="Precious")
    for undo in (True, False):
        expect(elsewhere).to_be_visible()
        button(page.get_by_role("main"), "Options for Precious").click()
        page.get_by_role("menuitem", name="Delete").click()
        button(page.get_by_role("dialog"), "Delete").click()
        expect(row).to_have_count(0)
        expect(elsewhere).to_have_count(0)
        assert server.get(f"/api/sessions/{sid}")["title"] == "Precious"
        if undo:
            button(page.get_by_role("status", name="Confirmation"), "Undo").click()
            expect(row).to_be_visible()
            expect(message_box(page)).to_have_value("half a thought")
    console_errors.expect("404")  # the page makes sure of it after it was left
    page.reload()
    expect(message_box(page)).to_be_visible()
    expect(row).to_have_count(0)
    server.refused("not-found", "GET", f"/api/sessions/{sid}")
    expect(page.get_by_role("region", name="Unsent")).to_have_count(0)


def test_many_chats_are_archived_moved_and_deleted_at_once(server: Served, open_page: Open) -> None:
    """Chats are selected one by one or from one to another, by mouse and keyboard, and a title is generated."""
    sids = [server.session(title=f"Chat {n}") for n in range(5)]
    page = open_page(server.url, 390, 844)
    button(page, "Open sidebar").click()
    chats = page.get_by_role("navigation", name="Chats")
    bar = chats.get_by_role("region", name="Selected chats")

    def select(*names: str) -> None:
        if not bar.count():
            button(chats, f"Options for {names[0]}").click()
            page.get_by_role("menuitem", name="Select chats").click()
        for name in names[1:]:
            chats.get_by_role("checkbox", name=name).check()

    select("Chat 4", "Chat 3")
    expect(bar).to_contain_text("2 selected")
    expect(chats.get_by_role("checkbox", name="Chat 4")).to_be_focused()
    assert axe_violations(page) == []
    button(bar, "Archive selected").click()
    expect(page.get_by_role("status", name="Confirmation")).to_contain_text("2 chats archived")
    expect(chats.get_by_role("listitem")).to_have_count(3)
    button(page.get_by_role("status", name="Confirmation"), "Undo").click()
    expect(chats.get_by_role("listitem")).to_have_count(5)
    select("Chat 4")
    chats.get_by_role("checkbox", name="Chat 2").click(modifiers=["Shift"])
    expect(bar).to_contain_text("3 selected")
    chats.get_by_role("checkbox", name="Chat 0").click(modifiers=["Shift"])
    expect(bar).to_contain_text("5 selected")
    chats.get_by_role("checkbox", name="Chat 1").uncheck()
    button(bar, "Move selected to project").click()
    dialog = page.get_by_role("dialog", name="Move to project")
    dialog.get_by_role("textbox").fill("Garden")
    button(dialog, "Move").click()
    expect(chats.get_by_role("region", name="Garden").get_by_role("listitem")).to_have_count(4)
    expect(bar).to_have_count(0)
    select("Chat 3")
    page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    select("Chat 3")
    button(bar, "Select all").click()
    button(bar, "Delete selected").click()
    button(page.get_by_role("dialog", name="Delete 5 chats?"), "Delete").click()
    expect(chats.get_by_role("listitem")).to_have_count(0)
    button(page.get_by_role("status", name="Confirmation"), "Undo").click()
    expect(chats.get_by_role("listitem")).to_have_count(5)
    server.turn(sids[0], "water the garden")
    button(chats, "Options for Chat 0").click()
    page.get_by_role("menuitem", name="Generate title").click()
    expect(chats.get_by_role("link", name="water the garden")).to_be_visible()
    button(page.get_by_role("status", name="Confirmation"), "Undo").click()
    expect(chats.get_by_role("link", name="Chat 0")).to_be_visible()


def test_what_was_changed_of_several_chats_can_be_undone(
    server: Served, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """A chat that cannot be changed is named and stays selected; the others are changed all the same."""
    sids = [server.session(title=f"Chat {n}", project="Field" if n == 0 else None) for n in range(3)]
    page = open_page(server.url)
    chats = page.get_by_role("navigation", name="Chats")
    bar = chats.get_by_role("region", name="Selected chats")
    confirmation = page.get_by_role("status", name="Confirmation")
    refusal = {"type": "unavailable", "title": "Busy", "status": 409, "detail": "Chat 1 is busy."}
    page.route(f"**/api/sessions/{sids[1]}", lambda route: route.fulfill(status=409, json=refusal))

    def stored(field: str) -> list[Any]:
        return [server.get(f"/api/sessions/{sid}")[field] for sid in sids]

    button(chats, "Options for Chat 2").click()
    page.get_by_role("menuitem", name="Select chats").click()
    button(bar, "Select all").click()
    button(bar, "Archive selected").click()
    expect(confirmation).to_contain_text("2 chats archived")
    expect(page.get_by_role("alert")).to_have_text("“Chat 1” was not changed. Chat 1 is busy.")
    expect(bar).to_contain_text("1 selected")
    assert stored("archived") == [True, False, True]
    button(confirmation, "Undo").click()
    expect(chats.get_by_role("listitem")).to_have_count(3)
    assert stored("archived") == [False] * 3
    button(bar, "Select all").click()
    button(bar, "Move selected to project").click()
    dialog = page.get_by_role("dialog", name="Move to project")
    dialog.get_by_label("Project").select_option("New project…")
    dialog.get_by_role("textbox").fill("Garden")
    button(dialog, "Move").click()
    expect(confirmation).to_contain_text("Moved to Garden")
    expect(bar).to_contain_text("3 selected")
    assert stored("project") == ["Garden", None, "Garden"]
    button(confirmation, "Undo").click()
    expect(chats.get_by_role("region", name="Garden").get_by_role("listitem")).to_have_count(0)
    assert stored("project") == ["Field", None, None]
    console_errors.expect("409")


_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR42mPgzsvDgxhGpbEhAIAIWj09iUcsAAAAAElFTkSuQmCC"
)


def test_text_is_found_in_a_long_chat(start: Start, tmp_path: Path, open_page: Open) -> None:
    """Find lists the questions, finds text in messages that are not loaded yet, goes from match to match and highlights
    it; J and K move between messages; all of it without a mouse."""
    seed.seed_messages(tmp_path / "data", 1200)
    page = open_page(f"{start().url}/c/{seed.LONG}")
    expect(answers(page).last).to_contain_text("Message number 1200.")
    page.keyboard.press("Control+f")
    field, panel = page.get_by_role("combobox", name="Find in chat"), page.get_by_role("search", name="Find in chat")
    expect(field).to_be_focused()
    options = panel.get_by_role("option")
    expect(options).to_have_count(600)
    expect(options.first).to_contain_text("Message number 1.")
    field.fill("NUMBER  77")
    expect(panel.get_by_role("status")).to_have_text("11 messages")
    field.press("Enter")
    expect(panel.get_by_role("status")).to_have_text("11 of 11 messages")
    found = page.locator("article", has_text="Message number 779.")
    expect(found).to_be_in_viewport()
    assert page.evaluate("[...CSS.highlights.get('search')].map(String)") == ["number 77"]
    field.press("Enter")
    expect(page.locator("article", has_text="Message number 778.")).to_be_in_viewport()
    field.press("ArrowDown")
    field.press("ArrowDown")
    expect(panel.get_by_role("status")).to_have_text("1 of 11 messages")
    expect(page.locator("article", has_text="Message number 77.")).to_be_in_viewport()
    assert axe_violations(page) == []
    field.fill("turnips")
    expect(panel).to_contain_text("No matches")
    field.press("Escape")
    expect(panel).to_have_count(0)
    assert not page.evaluate("CSS.highlights.has('search')")
    expect(message_box(page)).to_be_focused()
    page.get_by_role("region", name="Conversation").focus()
    button(page, "Scroll to bottom").click()
    last = answers(page).last
    expect(last).to_contain_text("Message number 1200.")
    last.focus()
    page.keyboard.press("k")
    expect(page.locator("article:focus")).to_contain_text("Message number 1199.")
    page.keyboard.press("k")
    page.keyboard.press("j")
    expect(page.locator("article:focus")).to_contain_text("Message number 1199.")


def test_shortcuts_of_a_single_key_can_be_turned_off(server: Served, open_page: Open) -> None:
    """Then J, K, R and ? do nothing, also after a reload, and are not listed; the other shortcuts work."""
    sid = server.session()
    server.turn(sid, [{"say": "First line."}])
    page = open_page(f"{server.url}/settings#appearance")
    choice = page.get_by_role("checkbox", name="Single-key shortcuts")
    focused = page.locator("article:focus")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    for on in (False, True):
        page.goto(f"{server.url}/settings#appearance")
        choice.set_checked(on)
        assert axe_violations(page) == []
        page.goto(f"{server.url}/c/{sid}")
        expect(answers(page)).to_contain_text("First line.")
        expect(answers(page).locator("[data-unrendered]")).to_have_count(0)
        message_box(page).blur()
        answers(page).focus()
        page.keyboard.press("k")
        expect(focused).to_have_attribute("aria-label", "You" if on else "Assistant")
        answers(page).locator("[data-part=text]").evaluate("part => getSelection().selectAllChildren(part)")
        expect(button(page, "Quote")).to_have_attribute("title", "Quote (R)" if on else "Quote")
        page.keyboard.press("r")
        expect(message_box(page)).to_have_value("> First line.\n\n" if on else "")
        message_box(page).fill("")
        message_box(page).blur()
        page.keyboard.press("?")
        expect(shortcuts).to_have_count(1 if on else 0)
        if not on:
            page.keyboard.press("Control+k")
            page.get_by_role("option", name="Keyboard shortcuts").click()
        expect(shortcuts.get_by_text("New chat")).to_be_visible()
        expect(shortcuts.get_by_text("Next message")).to_have_count(1 if on else 0)


def test_what_was_said_is_quoted_and_images_are_shown_large(server: Served, open_page: Open) -> None:
    """Selected text is quoted by button or key; an image opens large and leads to the next; an answer says how long it
    took and how fast it was."""
    sid = server.session()
    files = [
        server.http.post("/api/files", files={"file": (f"{name}.png", _PNG, "image/png")}).json()["id"]
        for name in ("one", "two")
    ]
    said = [{"say": "First line.\n\nSecond line."}, {"usage": [3, 40]}]
    parts = [{"type": "text", "text": json.dumps(said)}, *({"type": "file", "file_id": file} for file in files)]
    accepted = server.call("POST", f"/api/sessions/{sid}/runs", {"input": parts}, expect=202)
    server.events(accepted["run"]["id"])
    page = open_page(f"{server.url}/c/{sid}")
    answer, box = answers(page).last, message_box(page)
    expect(answer).to_contain_text(re.compile(r"\d m?s"))
    expect(answer).to_contain_text("tokens/s")
    expect(answer.locator("[data-unrendered]")).to_have_count(0)
    for quote in ("button", "key"):
        box.fill("As said:")
        box.blur()
        answer.locator("[data-part=text]").evaluate("part => getSelection().selectAllChildren(part)")
        expect(button(page, "Quote")).to_be_visible()
        if quote == "button":
            button(page, "Quote").click()
        else:
            page.keyboard.press("r")
        expect(box).to_have_value("As said:\n\n> First line.\n>\n> Second line.\n\n")
        expect(box).to_be_focused()
        expect(button(page, "Quote")).to_have_count(0)
    page.get_by_role("article", name="You").get_by_role("button").first.click()
    large = page.get_by_role("dialog", name="Image one.png")
    expect(large).to_contain_text("1/2")
    assert axe_violations(page) == []
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog", name="Image two.png").get_by_role("link", name="Download")).to_be_visible()
    button(page, "Actual size").click()
    expect(button(page, "Fit to window")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_whole_chat_is_printed_and_exported_as_one_file(
    start: Start, tmp_path: Path, open_page: Open, context: BrowserContext
) -> None:
    """Printing and the HTML export contain every message, also those that the page has not loaded, and the images; the
    file needs no server."""
    seed.seed_messages(tmp_path / "data", 200)
    server = start()
    file = server.http.post("/api/files", files={"file": ("view.png", _PNG, "image/png")}).json()["id"]
    parts = [{"type": "text", "text": "the last question"}, {"type": "file", "file_id": file}]
    accepted = server.call("POST", f"/api/sessions/{seed.LONG}/runs", {"input": parts}, expect=202)
    server.events(accepted["run"]["id"])
    context.add_init_script("window.print = () => { window.printed = true }")
    page = open_page(f"{server.url}/c/{seed.LONG}")
    expect(answers(page).last).to_contain_text("the last question")
    page.keyboard.press("Control+p")
    printed = page.frame_locator("#printed-chat")
    expect(printed.locator("article")).to_have_count(202)
    expect(printed.get_by_role("img", name="view.png")).to_have_js_property("naturalWidth", 10)
    page.wait_for_function("document.getElementById('printed-chat').contentWindow.printed")
    page.evaluate("document.getElementById('printed-chat').contentWindow.dispatchEvent(new Event('afterprint'))")
    expect(page.locator("#printed-chat")).to_have_count(0)
    button(page.get_by_role("main"), "Options for A long one").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Export as HTML").click()
    download.value.save_as(tmp_path / "chat.html")
    page.close()
    requests: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    for colors in ("light", "dark"):
        saved = open_page((tmp_path / "chat.html").as_uri(), 390, 844)
        saved.emulate_media(color_scheme=colors)
        expect(saved.locator("article")).to_have_count(202)
        expect(saved.get_by_role("img", name="view.png")).to_have_js_property("naturalWidth", 10)
        assert saved.evaluate("document.documentElement.scrollWidth") <= 390
    assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
