"""Files are mentioned in the message box, and what was deleted is found in the trash."""

from playwright.sync_api import Page, expect

from tests.browser.chat_page import axe_violations, button, message_box, send
from tests.browser.conftest import ConsoleErrors, Open
from tests.browser.test_workspace import item, panel, workspace
from tests.http.client import Served
from tests.http.streams import until


def choices(page: Page) -> list[str]:
    return page.get_by_role("listbox", name="Files").get_by_role("option").all_inner_texts()


def test_a_file_is_mentioned_by_keyboard(server: Served, open_page: Open) -> None:
    """An @ lists files; arrows choose, Tab completes a folder and then its file, which is attached as it is; Escape
    closes the list, and an @ within a word opens none."""
    sid, root = workspace(server)
    (root / "my notes.md").write_text("# Mine\n")
    page = open_page(f"{server.url}/c/{sid}")
    box, files = message_box(page), page.get_by_role("listbox", name="Files")
    box.press_sequentially("mail me@ho")
    expect(files).to_have_count(0)
    box.fill("")
    box.press_sequentially("Explain @sr")
    expect(files.get_by_role("option").first).to_have_text("src/")
    expect(box).to_have_attribute("aria-activedescendant", "file-mentions-0")
    assert axe_violations(page) == []
    page.keyboard.press("Tab")
    expect(box).to_have_value("Explain @src/")
    expect(files.get_by_role("option").filter(has_text="main.py")).to_be_visible()
    box.press_sequentially("main")
    expect(files.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(box).to_have_value("Explain @src/main.py ")
    attached = page.get_by_role("list", name="Attachments")
    expect(attached).to_contain_text("src/main.py")
    box.press_sequentially("and @my")
    expect(files.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(files).to_have_count(0)
    box.press_sequentially(" ")
    page.keyboard.press("Backspace")
    expect(files.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(box).to_have_value('Explain @src/main.py and @"my notes.md" ')
    expect(attached.get_by_role("listitem")).to_have_count(2)
    button(page, "Send").click()
    (question, *_) = until(lambda: server.messages(sid), bool)
    parts = question["parts"]
    assert [part["name"] for part in parts if part["type"] == "file"] == ["src/main.py", "my notes.md"]


def test_a_file_is_mentioned_on_a_phone(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A tap chooses; what models cannot read is mentioned by its path alone; the list fits."""
    console_errors.expect("409")
    sid, _ = workspace(server)
    page = open_page(f"{server.url}/c/{sid}", width=360, height=740)
    box, files = message_box(page), page.get_by_role("listbox", name="Files")
    box.press_sequentially("Run @prog")
    files.get_by_role("option").filter(has_text="program.bin").click()
    expect(box).to_have_value("Run @program.bin ")
    expect(box).to_be_focused()
    box.press_sequentially("@")
    expect(files.get_by_role("option").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert axe_violations(page) == []
    expect(page.get_by_role("list", name="Attachments")).to_have_count(0)


def test_a_chat_without_files_completes_nothing(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """Enter sends a message with an @ as always."""
    console_errors.expect("409")
    page = open_page(f"{server.url}/c/{server.session(title='No files')}")
    send(page, "hello @nobody")
    expect(page.get_by_role("article", name="You")).to_contain_text("hello @nobody")


def test_the_trash_is_shown_restored_and_emptied(server: Served, open_page: Open) -> None:
    """Deleted files are listed with where they were; one is restored, one erased, and the rest emptied, by keyboard
    and on a phone."""
    sid, root = workspace(server)
    url = f"/api/sessions/{sid}/workspace/entries"
    for name in ("README.md", "src/lib/deep.py", "data.csv", "photo.png"):
        assert server.http.delete(url, params={"path": name}).status_code == 200
    page = open_page(f"{server.url}/c/{sid}", width=360, height=740)
    button(page, "Files").click()
    expect(item(page, "config.json")).to_be_visible()
    page.get_by_role("radio", name="Trash").focus()
    page.keyboard.press("Space")
    deleted = panel(page).get_by_role("list", name="Deleted files")
    expect(deleted.get_by_role("listitem")).to_have_count(4)
    expect(deleted.get_by_role("listitem").filter(has_text="deep.py")).to_contain_text("From src/lib")
    assert axe_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    button(deleted, "Restore: deep.py").focus()
    page.keyboard.press("Enter")
    expect(deleted.get_by_role("listitem")).to_have_count(3)
    assert (root / "src/lib/deep.py").read_text() == "x = 1\n"
    button(deleted, "Delete permanently: data.csv").click()
    button(page.get_by_role("dialog"), "Delete permanently").click()
    expect(deleted.get_by_role("listitem")).to_have_count(2)
    button(panel(page), "Empty trash").click()
    button(page.get_by_role("dialog"), "Delete permanently").click()
    expect(panel(page)).to_contain_text("The trash is empty")
    page.get_by_role("radio", name="Files").check()
    item(page, "src").click()
    expect(item(page, "lib")).to_be_visible()
