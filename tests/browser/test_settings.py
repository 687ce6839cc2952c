"""Settings, and what else needs models to choose from: the server is that of the pictures."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, Response, expect

from tests.browser.conftest import CHROMIUM, Open
from tests.browser.see import GUARD_MS, answers, axe, button, finished, message_box, send, session_of
from tests.http.client import Served
from tests.nursery import Fresh


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(Fresh("tests.browser.story"), tmp_path_factory.mktemp("story") / "data") as served:
        yield served.ready()


def section(page: Page, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True)


def test_a_model_is_chosen_and_the_window_is_measured(story: Served, open_page: Open) -> None:
    """The picker finds a model by its name; the answer says which one it was; and how full its context is."""
    page = open_page(story.url)
    page.get_by_role("button", name="Model: Atlas Large").click()
    page.get_by_role("combobox", name="Find a model").fill("bree")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Model: Breeze Small")).to_be_visible()
    send(page, "What is a good knot for a wet rope?")
    expect(answers(page)).to_contain_text("double fisherman")
    finished(page)
    sid = session_of(page)
    assert story.answer(sid)["model"] == "house/breeze-small"
    expect(answers(page)).to_contain_text("house/breeze-small")
    expect(page.get_by_role("meter", name="Context: about 2,146 of 128,000 tokens")).to_be_visible()


def test_models_are_tried_and_chosen(story: Served, open_page: Open) -> None:
    """Test asks a model for a word; the default is kept by the server."""
    page = open_page(f"{story.url}/settings")
    models = section(page, "Models")
    button(models, "Test: Atlas Large").click()
    expect(models.get_by_role("status")).to_contain_text("It said “Hello!”")
    expect(button(models, "Test: Comet")).to_be_disabled()


def changes_settings(response: Response) -> bool:
    """Not the answer to a look at them, which may still be under way."""
    return response.url.endswith("/api/settings") and response.request.method == "PATCH"


def test_rules_for_tools(story: Served, open_page: Open) -> None:
    """Each tool is listed with what it does by itself; a rule of one's own is kept and can be taken back."""
    page = open_page(f"{story.url}/settings#tools")
    tools = section(page, "Agents and tools")
    rule = tools.get_by_role("combobox", name="Rule for edit_file")
    expect(rule).to_have_value("")
    with page.expect_response(changes_settings):
        rule.select_option("Deny")
    assert story.get("/api/settings")["tools"] == {"edit_file": "deny"}
    button(tools, "Add a rule").click()
    page.get_by_role("textbox", name="A pattern").fill("charts__*")
    with page.expect_response(changes_settings):
        button(page, "Save").click()
    expect(tools.get_by_role("combobox", name="Rule for charts__*")).to_have_value("ask")
    for name in ("edit_file", "charts__*"):
        with page.expect_response(changes_settings):
            tools.get_by_role("combobox", name=f"Rule for {name}").select_option("")
    assert story.get("/api/settings")["tools"] == {}


def test_mcp_servers_are_added_and_removed(story: Served, open_page: Open) -> None:
    """A server is added with an address, tried, and removed; those of the configuration stay."""
    page = open_page(f"{story.url}/settings#mcp")
    servers = section(page, "MCP servers")
    expect(servers.get_by_role("listitem")).to_have_count(2)
    button(servers, "Add a server").click()
    form = page.get_by_role("dialog", name="Add an MCP server")
    form.get_by_role("textbox", name="Name").fill("weather")
    form.get_by_role("textbox", name="Address").fill("https://weather.example/mcp")
    button(form, "Add").click()
    expect(form).to_have_count(0)
    row = servers.get_by_role("listitem").filter(has_text="weather")
    expect(row).to_contain_text("https://weather.example/mcp")
    button(row, "Test: weather").click()
    expect(row).to_contain_text("1 tools: weather__soundings")
    button(row, "Remove: weather").click()
    button(page.get_by_role("dialog"), "Remove").click()
    expect(servers.get_by_role("listitem")).to_have_count(2)
    expect(button(servers, "Remove: library")).to_have_count(0)


def test_a_password_and_a_token(server: Served, open_page: Open, browser: Browser, complaints: list[str]) -> None:
    """Setting a password keeps this page logged in and sends others to the login; tokens are made and revoked."""
    page = open_page(f"{server.url}/settings#access")
    access = section(page, "Password and tokens")
    button(access, "New token").click()
    page.get_by_role("textbox", name="What it is for").fill("backup script")
    button(page, "Save").click()
    expect(access).to_contain_text("Copy it now")
    expect(access.get_by_role("listitem")).to_contain_text("backup script")
    button(access, "Revoke: backup script").click()
    expect(access.get_by_role("listitem")).to_have_count(0)
    access.get_by_label("New password").fill("correct horse")
    button(access, "Set a password").click()
    expect(access.get_by_role("status")).to_contain_text("The password is set")
    page.reload()
    expect(access).to_contain_text("A password is set.")
    stranger = browser.new_context()
    other = stranger.new_page()
    other.goto(server.url)
    expect(other).to_have_url(re.compile("/login"))
    other.get_by_label("Password").fill("correct horse")
    other.keyboard.press("Enter")
    expect(message_box(other)).to_be_visible()
    stranger.close()
    button(access, "Log out").click()
    expect(page).to_have_url(re.compile("/login"))
    complaints[:] = [text for text in complaints if "401" not in text]


def test_data_out_and_in(server: Served, open_page: Open) -> None:
    """Everything is exported in one file, and what is imported is in the list."""
    server.events(server.send(server.session(title="To be kept"), "words")["run"]["id"])
    page = open_page(f"{server.url}/settings#data")
    data = section(page, "Data")
    with page.expect_download() as saved:
        data.get_by_role("link", name="Export all chats").click()
    with page.expect_file_chooser() as chosen:
        button(data, "Import chats").click()
    chosen.value.set_files(saved.value.path().rename(saved.value.path().with_suffix(".jsonl")))
    expect(data.get_by_role("status")).to_have_text("1 chat was imported.")
    nav = page.get_by_role("navigation", name="Sessions")
    expect(nav.get_by_role("link", name="To be kept")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_opens(story: Served, browser: Browser, scheme: Any) -> None:
    """No accessibility violation in full settings, dialogs, menus, pickers and panes, light and dark."""
    story.events(story.send(story.session(title="Knots"), "What is a good knot for a wet rope?")["run"]["id"])
    context = browser.new_context(color_scheme=scheme)
    context.set_default_timeout(GUARD_MS)
    page = context.new_page()
    page.goto(f"{story.url}/settings")
    expect(page.get_by_text("Storage answers")).to_be_visible()
    expect(section(page, "MCP servers")).to_contain_text("charts.example")
    assert axe(page) == []
    button(page, "Add a server").click()
    assert axe(page) == []
    page.keyboard.press("Escape")
    page.goto(story.url)
    page.get_by_role("button", name="Model: ").click()
    expect(page.get_by_role("combobox", name="Find a model")).to_be_focused()
    assert axe(page) == []
    page.keyboard.press("Escape")
    row = page.get_by_role("navigation", name="Sessions").get_by_role("listitem").filter(has_text="Knots").first
    row.hover()
    button(row, "More about Knots").click()
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    assert axe(page) == []
    page.goto(f"{story.url}/compare")
    page.get_by_role("textbox", name="Prompt").fill("Write one sentence about the sea.")
    button(page, "Compare").click()
    expect(button(page, "Continue with this one")).to_have_count(2)
    assert axe(page) == []
    context.close()


def test_it_can_be_installed(story: Served, playwright: Playwright, tmp_path: Path) -> None:
    """Chromium has nothing against installing the page as an app."""
    context = playwright.chromium.launch_persistent_context(
        tmp_path / "profile", executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
    )
    page = context.new_page()
    page.goto(story.url)
    expect(message_box(page)).to_be_visible()
    chromium = context.new_cdp_session(page)
    manifest = chromium.send("Page.getAppManifest")
    assert manifest["errors"] == []
    assert manifest["url"].startswith(story.url)
    assert chromium.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
    context.close()
