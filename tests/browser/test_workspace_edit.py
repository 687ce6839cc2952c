"""Files of a chat's agent are edited, created, moved, deleted and uploaded in the page, and nothing is lost unseen."""

import os
from pathlib import Path
from typing import Final

from playwright.sync_api import Dialog, Locator, Page, expect

from tests.browser.chat_page import axe_violations, button
from tests.browser.conftest import ConsoleErrors, Open
from tests.browser.test_workspace import item, panel, show, workspace
from tests.http.client import Served
from tests.http.streams import until

DROP: Final = """([row, names]) => {
  const data = new DataTransfer();
  for (const name of names) data.items.add(new File([`content of ${name}`], name));
  for (const type of ["dragover", "drop"]) {
    row.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
  }
}"""


def opened(server: Served, open_page: Open, width: int = 1400) -> tuple[Page, Path]:
    sid, root = workspace(server)
    page = open_page(f"{server.url}/c/{sid}", width=width, height=740)
    button(page, "Files").click()
    expect(item(page, "README.md")).to_be_visible()
    return page, root


def text_of(page: Page, name: str) -> Locator:
    return panel(page).get_by_role("textbox", name=f"Text of {name}")


def edit(page: Page, name: str) -> Locator:
    show(page, name)
    button(panel(page), "Edit").click()
    return text_of(page, name)


def answer(page: Page, value: str, action: str) -> None:
    """Fill in the dialog that is open."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill(value)
    button(dialog, action).click()


def menu(page: Page, name: str, choice: str) -> None:
    item(page, name).click(button="right")
    page.get_by_role("menuitem", name=choice, exact=True).click()


def saved(path: Path, content: str) -> None:
    until(lambda: path.read_bytes() if path.exists() else b"", lambda found: found == content.encode())


def test_a_file_is_edited_by_keyboard(server: Served, open_page: Open) -> None:
    """Tab indents, Shift+Tab outdents, Ctrl+Z undoes, Ctrl+S saves; Escape and Tab leave the text; line endings and the
    mode stay."""
    page, root = opened(server, open_page)
    path = root / "src" / "main.py"
    path.write_bytes(b"def tide():\r\n    return 1\r\n")
    path.chmod(0o755)
    item(page, "src").click()
    item(page, "main.py").click()
    button(panel(page), "Edit").focus()
    page.keyboard.press("Enter")
    area = text_of(page, "main.py")
    expect(area).to_be_focused()
    expect(button(panel(page), "Save")).to_be_disabled()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Tab")
    expect(area).to_have_value("    def tide():\n    return 1\n")
    page.keyboard.press("Control+a")
    page.keyboard.press("Tab")
    expect(area).to_have_value("        def tide():\n        return 1\n")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    expect(area).to_have_value("def tide():\nreturn 1\n")
    page.keyboard.press("Control+z")
    expect(area).to_have_value("    def tide():\n    return 1\n")
    expect(panel(page).get_by_role("status")).to_have_text("Unsaved changes")
    page.keyboard.press("Control+s")
    expect(panel(page).get_by_role("status")).to_have_text("Saved")
    assert path.read_bytes() == b"    def tide():\r\n    return 1\r\n"
    assert path.stat().st_mode & 0o777 == 0o755
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(button(panel(page), "Done")).to_be_focused()
    assert axe_violations(page) == []
    page.keyboard.press("Enter")
    expect(panel(page).locator("pre")).to_contain_text("def tide")


def test_unsaved_changes_are_kept(server: Served, open_page: Open) -> None:
    """They are there after another file, another chat and a closed panel; a reload asks; Cancel asks before it discards
    them."""
    page, root = opened(server, open_page)
    edit(page, "README.md").fill("# Mine\n")
    button(panel(page), "Chat folder").click()
    expect(page.get_by_role("status", name="Confirmation")).to_contain_text("Unsaved changes in README.md")
    button(page, "Open").click()
    expect(text_of(page, "README.md")).to_have_value("# Mine\n")
    button(panel(page), "Close files").click()
    button(page, "Files").click()
    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    show(page, "README.md")
    expect(text_of(page, "README.md")).to_have_value("# Mine\n")
    button(panel(page), "Cancel").click()
    button(page.get_by_role("dialog"), "Cancel").click()
    expect(text_of(page, "README.md")).to_have_value("# Mine\n")
    page.on("dialog", refuse)
    page.reload()
    assert asked == ["beforeunload"]
    edit(page, "README.md").fill("# Mine again\n")
    button(panel(page), "Cancel").click()
    button(page.get_by_role("dialog"), "Discard").click()
    expect(panel(page).get_by_role("heading", name="Tide tables")).to_be_visible()
    page.reload()
    assert asked == ["beforeunload"]
    assert (root / "README.md").read_text().startswith("# Tide tables")


def test_a_conflict_shows_both_versions(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """What an agent wrote meanwhile is shown beside one's own; either can be kept, also if the file was deleted."""
    console_errors.expect("412")
    console_errors.expect("404")
    page, root = opened(server, open_page)
    files, path = panel(page), root / "README.md"
    area = edit(page, "README.md")
    area.fill("# Tide tables\n\nmine\n")
    path.write_text("# Tide tables\n\ntheirs\n")
    button(files, "Save").click()
    conflict = files.get_by_role("region", name="Conflict")
    expect(conflict).to_be_focused()
    expect(conflict.get_by_role("region", name="Your version").locator("mark")).to_have_text("mine")
    expect(conflict.get_by_role("region", name="Version on disk").locator("mark")).to_have_text("theirs")
    assert axe_violations(page) == []
    button(conflict, "Back to editing").click()
    expect(area).to_have_value("# Tide tables\n\nmine\n")
    expect(files.get_by_role("note")).to_contain_text("has changed since you opened it")
    button(files, "Save").click()
    button(conflict, "Keep mine").click()
    expect(files.get_by_role("status")).to_have_text("Saved")
    assert path.read_text() == "# Tide tables\n\nmine\n"
    area.fill("mine again")
    path.write_text("theirs again")
    button(files, "Save").click()
    button(conflict, "Use version on disk").click()
    expect(area).to_have_value("theirs again")
    expect(button(files, "Save")).to_be_disabled()
    area.fill("mine at last")
    path.unlink()
    button(files, "Save").click()
    expect(conflict).to_contain_text("This file was deleted")
    button(conflict, "Save as new file").click()
    expect(files.get_by_role("status")).to_have_text("Saved")
    assert path.read_text() == "mine at last"


def test_files_are_created_renamed_moved_and_deleted(
    server: Served, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """From the menus; a new file opens for editing, a name that is taken is refused, and Undo restores."""
    console_errors.expect("409")
    console_errors.expect("404")  # an open folder that was deleted
    page, root = opened(server, open_page)
    files, toast = panel(page), page.get_by_role("status", name="Confirmation")
    button(files, "Add files").click()
    page.get_by_role("menuitem", name="New folder").click()
    answer(page, "100% new", "Create")
    expect(item(page, "100% new")).to_be_focused()
    assert (root / "100% new").is_dir()
    menu(page, "100% new", "New file")
    answer(page, "notes.md", "Create")
    text_of(page, "notes.md").fill("# Notes\n")
    page.keyboard.press("Control+s")
    saved(root / "100% new" / "notes.md", "# Notes\n")
    button(files, "Done").click()
    button(files, "Chat folder").click()
    menu(page, "data.csv", "Move")
    answer(page, "src/lib", "Move")
    until((root / "src/lib/data.csv").exists, bool)
    expect(item(page, "data.csv")).to_be_focused()  # its folders are open now
    menu(page, "data.csv", "Rename")
    answer(page, "table.csv", "Rename")
    expect(item(page, "table.csv")).to_be_focused()
    menu(page, "table.csv", "Rename")
    answer(page, "deep.py", "Rename")
    dialog = page.get_by_role("dialog", name="Rename")
    expect(dialog.get_by_role("alert")).to_contain_text("There is already")
    expect(dialog.get_by_role("textbox")).to_have_value("deep.py")
    expect(dialog.get_by_role("textbox")).to_be_focused()
    page.keyboard.press("Escape")
    menu(page, "100% new", "Delete")
    expect(item(page, "100% new")).to_have_count(0)
    expect(toast).to_contain_text("Deleted 100% new")
    button(toast, "Undo").click()
    expect(item(page, "100% new")).to_be_visible()
    assert (root / "100% new" / "notes.md").read_text() == "# Notes\n"
    assert axe_violations(page) == []


def test_the_tree_has_keys(server: Served, open_page: Open) -> None:
    """F2 renames, Delete deletes and goes to the next row, and the menu opens with its key."""
    page, root = opened(server, open_page)
    item(page, "config.json").focus()
    page.keyboard.press("F2")
    expect(page.get_by_role("dialog").get_by_role("textbox")).to_be_focused()
    page.keyboard.type("settings.json")
    page.keyboard.press("Enter")
    expect(item(page, "settings.json")).to_be_focused()
    assert (root / "settings.json").exists()
    item(page, "long.log").focus()
    page.keyboard.press("Delete")
    expect(item(page, "long.log")).to_have_count(0)
    expect(item(page, "page.html")).to_be_focused()
    assert not (root / "long.log").exists()
    page.keyboard.press("Shift+F10")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(item(page, "page.html")).to_have_count(0)
    expect(item(page, "photo.png")).to_be_focused()


def test_files_are_uploaded(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """Chosen from the menu or dropped onto a folder; a name that is taken is not replaced, and the chat gets none."""
    console_errors.expect("409")
    page, root = opened(server, open_page)
    with page.expect_file_chooser() as chooser:
        button(panel(page), "Add files").click()
        page.get_by_role("menuitem", name="Upload files").click()
    chooser.value.set_files({"name": "up.bin", "mimeType": "image/png", "buffer": b"\0\1\2"})
    expect(item(page, "up.bin")).to_be_focused()
    assert (root / "up.bin").read_bytes() == b"\0\1\2"
    item(page, "src").evaluate(f"(row) => ({DROP})([row, ['one.txt', 'two.txt']])")
    toast = page.get_by_role("status", name="Confirmation")
    expect(toast).to_contain_text("Uploaded 2 files")
    expect(item(page, "two.txt")).to_be_visible()
    assert (root / "src" / "one.txt").read_text() == "content of one.txt"
    item(page, "README.md").evaluate(f"(row) => ({DROP})([row, ['config.json']])")
    expect(toast).to_contain_text("config.json was not uploaded. There is already")
    assert "Dover" in (root / "config.json").read_text()
    expect(page.get_by_text("Drop files here")).to_have_count(0)
    assert sorted(os.listdir(root / "src")) == ["lib", "main.py", "one.txt", "two.txt"]


def test_files_are_edited_on_a_phone(server: Served, open_page: Open) -> None:
    """The menu of a row is a button; the editor fits, Escape stays in it, and a conflict is readable."""
    page, root = opened(server, open_page, width=360)
    item(page, "README.md").get_by_role("button", name="Actions for README.md").click()
    page.get_by_role("menuitem", name="Rename").click()
    answer(page, "read.md", "Rename")
    expect(item(page, "read.md")).to_be_visible()
    area = edit(page, "read.md")
    area.fill("# Mine\n")
    area.press("Escape")
    expect(area).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    button(panel(page), "Save").click()
    saved(root / "read.md", "# Mine\n")
    assert axe_violations(page) == []
