"""Projects in the page: create, set up, fill, move chats, archive and delete, on a desktop, a phone and by keyboard."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chat_page import axe_violations, button, send, session_of
from tests.browser.conftest import ConsoleErrors, Open, Start
from tests.browser.sizes import PHONE, on_desk
from tests.browser.test_navigation import DROP
from tests.http.client import Served
from tests.http.streams import until


@pytest.fixture
def server(start: Start) -> Served:
    """A process of its own: projects stay behind."""
    return start()


def chats_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Chats of this project")


@on_desk
def test_a_project_is_created_set_up_and_used(server: Served, open_page: Open, size: tuple[int, int]) -> None:
    """A new project is empty and says what it is for; its instructions, color and settings are shown and count for a
    chat that is started in it, which says so; differences of the chat are marked."""
    page = open_page(f"{server.url}/projects", *size)
    expect(page.get_by_text("No projects yet")).to_be_visible()
    assert axe_violations(page) == []
    button(page, "New project").click()
    expect(button(page, "Create")).to_be_disabled()
    page.get_by_role("textbox", name="Name").fill("Harbor")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Harbor", level=1)).to_be_visible()
    expect(page.get_by_text("No chats in this project yet")).to_be_visible()
    assert axe_violations(page) == []
    button(page.get_by_role("region", name="Instructions"), "Edit").click()
    dialog = page.get_by_role("dialog", name="Project settings")
    dialog.get_by_role("radio", name="Teal").check()
    dialog.get_by_role("textbox", name="Instructions").fill("Answer like a harbor master.")
    dialog.get_by_role("spinbutton", name="Temperature").fill("0.3")
    dialog.get_by_role("checkbox", name="Use tools").uncheck()
    assert axe_violations(page) == []
    expect(button(dialog, "Save")).to_be_in_viewport(ratio=1)
    button(dialog, "Save").click()
    expect(dialog).to_have_count(0)
    card = page.get_by_role("region", name="Instructions")
    expect(card).to_contain_text("Answer like a harbor master.")
    expect(card).to_contain_text(re.compile(r"Temperature\s*0\.3"))
    made = server.get("/api/projects/Harbor")
    assert (made["color"], made["temperature"], made["use_tools"]) == ("teal", 0.3, False)
    button(page.get_by_role("main"), "New chat").first.click()
    send(page, "hello", shows="hello")
    sid = session_of(page)
    assert server.get(f"/api/sessions/{sid}")["project"] == "Harbor"
    button(page, "Chat settings").click()
    dialog = page.get_by_role("dialog", name="Chat settings")
    expect(dialog).to_contain_text("those of the project Harbor")
    expect(dialog.get_by_role("textbox", name="System prompt")).to_have_value("Answer like a harbor master.")
    expect(dialog.get_by_role("spinbutton", name="Temperature")).to_have_attribute("placeholder", "Default (0.3)")
    expect(dialog.get_by_role("checkbox", name="Use tools")).not_to_be_checked()
    expect(dialog.get_by_text("Changed")).to_have_count(0)
    dialog.get_by_role("checkbox", name="Use tools").check()
    expect(dialog.get_by_text("Changed")).to_have_count(1)
    button(dialog, "Save").click()
    expect(dialog).to_have_count(0)
    assert server.get(f"/api/sessions/{sid}")["use_tools"] is True


def test_files_are_dropped_removed_and_refused(server: Served, open_page: Open) -> None:
    """A file that is dropped anywhere on the page of a project is in the project; one that is refused is named."""
    made = server.post("/api/projects", {"name": "Papers"}, 201)
    page = open_page(f"{server.url}/projects/{made['id']}")
    files = page.get_by_role("list", name="Project files")
    expect(page.get_by_role("region", name="Files")).to_contain_text("Add text, images or PDFs.")
    assert page.get_by_role("main").evaluate(DROP) == [False, False]
    expect(files.get_by_role("link", name="notes.txt")).to_be_visible()
    assert [file["name"] for file in server.get("/api/projects/Papers")["files"]] == ["notes.txt"]
    page.locator("input[type=file]").set_input_files({"name": "empty.txt", "mimeType": "text/plain", "buffer": b""})
    expect(page.get_by_role("alert")).to_contain_text("empty.txt was not added.")
    assert axe_violations(page) == []
    button(files, "Remove notes.txt").click()
    expect(files.get_by_role("listitem")).to_have_count(0)
    assert server.get("/api/projects/Papers")["files"] == []


def test_chats_are_dragged_to_projects(server: Served, open_page: Open) -> None:
    """One chat, or all that are selected, is dragged onto a project of the list, also an empty one, and out of it
    again; Undo takes it back."""
    server.post("/api/projects", {"name": "Harbor", "color": "blue"}, 201)
    sids = [server.session(title=f"Chat {n}") for n in range(3)]
    page = open_page(server.url)
    chats = page.get_by_role("navigation", name="Chats")
    harbor, today = chats.get_by_role("region", name="Harbor"), chats.get_by_role("region", name="Today")

    def stored() -> list[str | None]:
        return [server.get(f"/api/sessions/{sid}")["project"] for sid in sids]

    expect(today.get_by_role("listitem")).to_have_count(3)
    today.get_by_role("listitem").filter(has_text="Chat 0").drag_to(harbor)
    expect(harbor.get_by_role("link", name="Chat 0")).to_be_visible()
    assert stored() == ["Harbor", None, None]
    button(page.get_by_role("status", name="Confirmation"), "Undo").click()
    expect(harbor.get_by_role("listitem")).to_have_count(0)
    button(chats, "Options for Chat 1").click()
    page.get_by_role("menuitem", name="Select chats").click()
    chats.get_by_role("checkbox", name="Chat 2").check()
    today.get_by_role("listitem").filter(has_text="Chat 2").drag_to(harbor)
    expect(harbor.get_by_role("listitem")).to_have_count(2)
    expect(chats.get_by_role("region", name="Selected chats")).to_have_count(0)
    assert stored() == [None, "Harbor", "Harbor"]
    harbor.get_by_role("listitem").filter(has_text="Chat 1").drag_to(today)
    until(stored, lambda found: found == [None, None, "Harbor"])


def test_a_project_is_archived_and_restored(server: Served, open_page: Open) -> None:
    """Its chats leave the list with it and come back with it; it is found among the archived projects."""
    made = server.post("/api/projects", {"name": "Old"}, 201)
    server.session(title="Kept", project="Old")
    page = open_page(f"{server.url}/projects")
    chats = page.get_by_role("navigation", name="Chats")
    projects = page.get_by_role("list", name="Projects")
    expect(chats.get_by_role("link", name="Kept")).to_be_visible()
    expect(projects).to_contain_text("1 chat")
    button(projects, "Options for project Old").click()
    page.get_by_role("menuitem", name="Archive").click()
    button(page.get_by_role("dialog", name="Archive project “Old”?"), "Archive").click()
    expect(chats.get_by_role("link", name="Kept")).to_have_count(0)
    expect(projects.get_by_role("listitem")).to_have_count(0)
    page.get_by_role("radio", name="Archived").check()
    projects.get_by_role("link", name="Old").click()
    expect(page.get_by_role("note", name="Archived")).to_be_visible()
    expect(chats_of(page).get_by_role("link", name="Kept")).to_be_visible()
    assert axe_violations(page) == []
    button(page.get_by_role("note", name="Archived"), "Restore").click()
    expect(chats.get_by_role("link", name="Kept")).to_be_visible()
    assert server.get(f"/api/projects/{made['id']}")["archived"] is False


@pytest.mark.parametrize("delete_chats", [False, True])
def test_a_project_is_deleted_by_keyboard(
    server: Served, open_page: Open, console_errors: ConsoleErrors, delete_chats: bool
) -> None:
    """The dialog offers to delete its chats too, and keeps them unless asked; Escape deletes nothing."""
    made = server.post("/api/projects", {"name": "Gone"}, 201)
    sid = server.session(title="Kept", project="Gone")
    page = open_page(f"{server.url}/projects/{made['id']}", *PHONE)
    dialog = page.get_by_role("dialog", name="Delete project “Gone”?")
    menu = button(page.get_by_role("main"), "Options for project Gone")
    for answer in ("Escape", "Enter"):
        menu.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("menuitem", name="New chat")).to_be_focused()
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        expect(dialog).to_be_visible()
        if answer == "Enter" and delete_chats:
            dialog.get_by_role("checkbox").focus()
            page.keyboard.press("Space")
        if answer == "Enter":
            button(dialog, "Delete").focus()
        page.keyboard.press(answer)
        expect(dialog).to_have_count(0)
        if answer == "Escape":
            assert server.get(f"/api/projects/{made['id']}")["name"] == "Gone"
    page.wait_for_url("**/projects")
    confirmation = page.get_by_role("status", name="Confirmation")
    expect(confirmation).to_contain_text("Project and chats deleted" if delete_chats else "Project deleted")
    answer_of_chat = server.http.get(f"/api/sessions/{sid}")
    assert answer_of_chat.status_code == (404 if delete_chats else 200)
    if not delete_chats:
        assert answer_of_chat.json()["project"] is None
    console_errors.expect("404")


def test_another_tab_sees_what_was_changed(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """U1: a new name, a new file and a deletion are shown where the project is open, and unknown ones are not found."""
    made = server.post("/api/projects", {"name": "Shared"}, 201)
    page = open_page(f"{server.url}/projects/{made['id']}")
    expect(page.get_by_role("heading", name="Shared", level=1)).to_be_visible()
    server.session(title="From elsewhere", project="Shared")
    expect(chats_of(page).get_by_role("link", name="From elsewhere")).to_be_visible()
    server.call("PATCH", f"/api/projects/{made['id']}", {"name": "Common", "color": "red"}, 200)
    expect(page.get_by_role("heading", name="Common", level=1)).to_be_visible()
    expect(page.get_by_role("navigation", name="Chats").get_by_role("link", name="Common")).to_be_visible()
    server.call("DELETE", f"/api/projects/{made['id']}", expect=204)
    expect(page.get_by_role("heading", name="Project not found")).to_be_visible()
    button(page, "All projects").click()
    expect(page.get_by_text("No projects yet")).to_be_visible()
    console_errors.expect("404")
