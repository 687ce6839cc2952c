"""What an answer changed in the files of its chat is shown beside it, and restored."""

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from holdfast.tools.workspace.jail import Jail
from holdfast.tools.workspace.snapshots.recorder import RunChanges
from holdfast.tools.workspace.tree import WorkspaceTree
from tests.browser.chat_page import answers, axe_violations, button
from tests.browser.conftest import ConsoleErrors, Open
from tests.browser.test_workspace import WRITES, panel, workspace
from tests.http.client import Served

NEW = "def tide(hour: int) -> float:\n    # feet\n    return 3.5 * hour\n"


def changed(server: Served) -> tuple[str, Path]:
    """A chat whose answer changed three files, as the recorder of the real tools has it."""
    sid, root = workspace(server)
    (root / "src/main.py").chmod(0o755)
    rid = server.begin(sid, json.dumps([WRITES, {"say": "Done."}]))
    assert server.ended(rid)["status"] == "complete"
    tree = WorkspaceTree(root.parent.resolve() / root.name, server.data_dir, own=True)
    run = RunChanges(server.data_dir / "snapshots" / sid, tree, rid, lambda: 1_700_000_000.0, 0)
    Jail(root, run).write(("src", "main.py"), NEW.encode())
    Jail(root, run).write(("notes", "new.md"), b"# New\n")
    run.before_program()
    (root / "data.csv").unlink()
    run.after_program()
    return sid, root


def test_changes_are_shown_and_restored_by_keyboard(
    server: Served, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """The answer says how many files it changed; each is compared and restored alone, then all; a file that changed
    since asks first; Undo brings back what was replaced."""
    console_errors.expect("412")
    sid, root = changed(server)
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    badge = answers(page).last.get_by_role("button", name="3 files changed")
    badge.focus()
    page.keyboard.press("Enter")
    files = panel(page)
    listed = files.get_by_role("list", name="Changed files").get_by_role("listitem")
    expect(listed).to_have_count(3)
    expect(listed.nth(0)).to_contain_text("data.csv")
    button(files, "Modified: src/main.py").focus()
    page.keyboard.press("Enter")
    diff = files.get_by_role("region", name="Differences in src/main.py")
    expect(diff).to_contain_text("-    # meters")
    expect(diff).to_contain_text("+    # feet")
    assert axe_violations(page) == []
    button(files, "Restore: data.csv").focus()
    page.keyboard.press("Enter")
    toast = page.get_by_role("status", name="Confirmation")
    expect(toast).to_contain_text("Restored 1 file")
    assert (root / "data.csv").exists()
    (root / "src/main.py").write_text("mine\n")
    files.get_by_role("button", name="Restore all: Changed 3 files").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("src/main.py")
    button(dialog, "Restore anyway").click()
    expect(toast).to_contain_text("Restored 2 files")
    assert (root / "src/main.py").read_text().startswith("def tide(hour: int) -> float:\n    # meters")
    assert (root / "src/main.py").stat().st_mode & 0o777 == 0o755
    assert not (root / "notes").exists()
    button(toast, "Undo").click()
    expect(toast).to_contain_text("Restored 2 files")
    assert (root / "src/main.py").read_text() == "mine\n"
    expect(files.get_by_role("list", name="Changes")).to_contain_text("Restored 2 files")


def test_changes_on_a_phone(server: Served, open_page: Open) -> None:
    """The badge and the differences fit; Escape leads back to the chat."""
    sid, _ = changed(server)
    page: Page = open_page(f"{server.url}/c/{sid}", width=360, height=740)
    answers(page).last.get_by_role("button", name="3 files changed").click()
    files = panel(page)
    button(files, "Created: notes/new.md").click()
    expect(files.get_by_role("region", name="Differences in notes/new.md")).to_contain_text("+# New")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert axe_violations(page) == []
    page.keyboard.press("Escape")
    expect(files).to_have_count(0)


def test_a_chat_without_changes_says_so(server: Served, open_page: Open) -> None:
    """There is no badge, and the list says what will be there."""
    sid, _ = workspace(server)
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    button(page, "Files").click()
    page.get_by_role("radio", name="Changes").check()
    expect(panel(page)).to_contain_text("No changes yet")
