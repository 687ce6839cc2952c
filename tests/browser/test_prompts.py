"""The prompt library in the page."""

import json
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.chat_page import answers, axe_violations, button, message_box
from tests.browser.conftest import Open
from tests.browser.sizes import on_phone
from tests.http.client import Served

TEXT = "Write a {{tone=friendly}} note to {{person}}"


def save(server: Served, name: str, text: str) -> None:
    server.post("/api/prompts", {"name": name, "text": text}, 201)


@on_phone
def test_a_prompt_is_saved_changed_inserted_and_deleted(server: Served, open_page: Open, size: tuple[int, int]) -> None:
    """By keyboard in the message box: its variables are asked for, with their defaults; the text can be changed before
    it is sent."""
    page = open_page(f"{server.url}/settings#prompts", *size)
    settings = page.get_by_role("region", name="Prompts")
    settings.get_by_role("button", name="Add prompt").click()
    dialog = page.get_by_role("dialog", name="Add prompt")
    dialog.get_by_label("Name").fill("note")
    dialog.get_by_label("Prompt").fill("Write {{what}}")
    assert axe_violations(page) == []
    button(dialog, "Add").click()
    expect(settings.get_by_text("/note")).to_be_visible()
    button(settings, "Edit: /note").click()
    dialog = page.get_by_role("dialog", name="Edit /note")
    dialog.get_by_label("Prompt").fill(TEXT)
    button(dialog, "Save").click()
    expect(settings.get_by_text("2 variables")).to_be_visible()
    assert axe_violations(page) == []
    page.goto(server.url)
    message_box(page).fill("/no")
    expect(page.get_by_role("option", name="/note")).to_be_visible()
    message_box(page).press("Enter")
    dialog = page.get_by_role("dialog", name="/note")
    expect(dialog.get_by_label("tone")).to_have_value("friendly")
    assert axe_violations(page) == []
    dialog.get_by_label("person").fill("Anna")
    button(dialog, "Insert").click()
    expect(message_box(page)).to_have_value("Write a friendly note to Anna")
    expect(message_box(page)).to_be_focused()
    message_box(page).press("Enter")
    expect(answers(page)).to_contain_text("Write a friendly note to Anna")
    page.goto(f"{server.url}/settings#prompts")
    button(settings, "Delete: /note").click()
    button(page.get_by_role("dialog"), "Delete").click()
    expect(settings.get_by_text("No prompts yet")).to_be_visible()


def test_a_library_is_exported_and_imported(server: Served, open_page: Open, tmp_path: Path) -> None:
    """A different prompt of the same name is replaced only if that is confirmed; what is no library is refused."""
    save(server, "one", "First")
    save(server, "two", "Second")
    page = open_page(f"{server.url}/settings#prompts")
    settings = page.get_by_role("region", name="Prompts")
    with page.expect_download() as download:
        settings.get_by_role("link", name="Export prompts").click()
    file = tmp_path / "prompts.json"
    download.value.save_as(file)
    assert [item["name"] for item in json.loads(file.read_text())["prompts"]] == ["one", "two"]
    server.call("PATCH", "/api/prompts/one", {"text": "Changed"}, 200)
    server.call("DELETE", "/api/prompts/two", expect=204)
    choose = settings.locator("input[type=file]")
    choose.set_input_files(file)
    button(page.get_by_role("dialog"), "Replace").click()
    expect(page.get_by_text("Prompts imported: 1 added, 1 replaced")).to_be_visible()
    assert [item["text"] for item in server.get("/api/prompts")["items"]] == ["First", "Second"]
    file.write_text("nothing")
    choose.set_input_files(file)
    expect(settings.get_by_role("alert")).to_contain_text("not a prompt library")


def test_a_prompt_without_variables_is_inserted_at_once(server: Served, open_page: Open) -> None:
    """A command of Holdfast with the same name wins; text after a command is no argument."""
    save(server, "brief", "Be brief.")
    save(server, "projects", "never seen")
    page = open_page(server.url)
    message_box(page).fill("/")
    expect(page.get_by_role("option", name="/brief")).to_be_visible()
    expect(page.get_by_role("option", name="/projects")).to_have_count(1)
    page.get_by_role("option", name="/brief").click()
    expect(message_box(page)).to_have_value("Be brief.")
    message_box(page).fill("/brief now")
    message_box(page).press("Enter")
    expect(page.get_by_text("/brief takes no arguments")).to_be_visible()
