"""Settings, and what needs several models: the server is that of the screenshots."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, FilePayload, Page, Playwright, Response, Route, expect

from holdfast.storage.key_file import KeyFile
from tests.browser.chat_page import answers, axe_violations, button, message_box, send, session_of, wait_idle
from tests.browser.conftest import CHROMIUM, ConsoleErrors, Open, Start
from tests.fork_server import ForkServer, ServerForker
from tests.http.client import Served
from tests.http.test_chat_import import write_files


@pytest.fixture
def server(start: Start) -> Served:
    """A process of its own: some of these tests leave a password or settings behind."""
    return start()


@pytest.fixture(scope="module")
def demo(fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(
        ServerForker(fork_server, "tests.browser.demo_server"), tmp_path_factory.mktemp("demo") / "data"
    ) as served:
        served.ready().post("/api/setup/done", expect=204)
        yield served


def section(page: Page, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True)


def test_a_model_is_tested_chosen_and_metered(demo: Served, open_page: Open) -> None:
    """A model is tested in the settings and found by its name; the answer shows it, and the meter how full it is."""
    page = open_page(f"{demo.url}/settings")
    models = section(page, "Models")
    button(models, "Test: Atlas Large").click()
    atlas, comet = (models.get_by_role("listitem").filter(has_text=name) for name in ("Atlas Large", "Comet"))
    expect(atlas.get_by_role("status")).to_contain_text("Answered “Hello!”")
    button(models, "Test: Comet").click()  # it is unavailable, and may be mended by now
    expect(comet.get_by_role("status")).not_to_contain_text("Testing…")
    button(models, "Refresh").click()
    expect(models).to_contain_text("Updated just now")
    button(page, "New chat").click()
    page.get_by_role("button", name="Model: Atlas Large").click()
    page.get_by_role("combobox", name="Search models").fill("bree")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Model: Breeze Small")).to_be_visible()
    expect(message_box(page)).to_be_focused()
    send(page, "What is a good knot for a wet rope?", shows="double fisherman")
    wait_idle(page)
    sid = session_of(page)
    assert demo.answer(sid)["model"] == "house/breeze-small"
    expect(answers(page)).to_contain_text("Breeze Small")
    expect(page.get_by_role("meter", name="Context used: about 2,146 of 128,000 tokens")).to_be_visible()


def test_the_model_that_is_shown_answers(demo: Served, open_page: Open, context: BrowserContext) -> None:
    """A page that does not know that the default was changed elsewhere is answered by the model that it shows, in a new
    chat, in an open one and when it regenerates."""
    stale = {**demo.get("/api/models"), "default": "house/breeze-small"}
    context.route(re.compile(r"/api/models(\?|$)"), lambda route: route.fulfill(json=stale))
    page = open_page(demo.url)
    expect(page.get_by_role("button", name="Model: Breeze Small")).to_be_visible()
    for n in (1, 2):
        send(page, "What is a good knot for a wet rope?")
        expect(answers(page)).to_have_count(n)
        wait_idle(page)
    button(page, "Regenerate").last.click()
    expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    wait_idle(page)
    models = [message["model"] for message in demo.messages(session_of(page)) if message["role"] == "assistant"]
    assert models == ["house/breeze-small"] * 2


def section_top(page: Page, name: str) -> float:
    box = section(page, name).bounding_box()
    assert box is not None
    return float(box["y"])


def test_a_section_is_shown_where_it_is_linked(demo: Served, open_page: Open) -> None:
    """A link to a section lands there when everything has loaded, and scrolls the settings, not the frame."""
    page = open_page(f"{demo.url}/settings#memory", height=600)
    expect(page.get_by_text("Server is healthy")).to_have_count(1)
    expect(section(page, "Memory")).to_be_in_viewport()
    assert 0 <= section_top(page, "Memory") < 150
    page.get_by_role("link", name="Activity").click()
    page.go_back()
    expect(section(page, "Memory")).to_be_in_viewport()
    page.set_viewport_size({"width": 1200, "height": 1100})
    page.get_by_role("navigation", name="Settings").get_by_role("link", name="Data").click()
    expect(button(page, "Import chats")).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Settings")).to_be_in_viewport()
    assert page.evaluate("[...document.querySelectorAll('#root > *')].map(frame => frame.scrollTop)") == [0]


def test_a_key_shows_its_source_and_its_address(demo: Served, open_page: Open) -> None:
    """Each provider shows where its key comes from and is sent to; only a key that was entered here can be removed."""
    page = open_page(f"{demo.url}/settings")
    keys = section(page, "Models").get_by_role("list", name="API keys").get_by_role("listitem")
    openai = keys.filter(has_text="openai")
    expect(openai).to_contain_text("Key from OPENAI_API_KEY")
    expect(openai).to_contain_text("https://gateway.example/v1")
    expect(button(openai, "Remove key: openai")).to_have_count(0)
    expect(button(keys.filter(has_text="house"), "Remove key: house")).to_be_visible()
    button(openai, "Replace key: openai").click()
    page.get_by_label("API key (sent to https://gateway.example/v1)").fill("sk-typed")
    page.keyboard.press("Enter")
    doubt = "Saved, but the key could not be verified: Can't reach Anthropic (api.anthropic.com)."
    expect(section(page, "Models").get_by_role("alert")).to_have_text(doubt)


def test_an_attachment_that_the_model_cannot_read_says_so(demo: Served, open_page: Open) -> None:
    """An image or a PDF names the chosen model, which cannot read it; a text has no warning, an empty file an error."""
    page = open_page(demo.url)
    files = {"moon.png": b"\x89PNG\r\n\x1a\n" + b"0" * 20, "a.pdf": b"%PDF-1.4 x", "b.txt": b"words", "c.txt": b""}
    with page.expect_file_chooser() as chosen:
        button(page, "Attach files").click()
    chosen.value.set_files([FilePayload(name=name, mimeType="", buffer=data) for name, data in files.items()])
    attached = page.get_by_role("list", name="Attachments").get_by_role("listitem")
    expect(attached.filter(has_text="moon.png")).to_contain_text("Atlas Large can’t see images")
    expect(attached.filter(has_text="a.pdf")).to_contain_text("Atlas Large can’t read PDFs")
    expect(attached.filter(has_text="c.txt")).to_contain_text("This file is empty.")
    expect(button(attached, "Retry c.txt")).to_have_count(0)  # it would be as empty again
    expect(attached.filter(has_text="b.txt").get_by_role("alert")).to_have_count(0)
    button(attached, "Dismiss c.txt").click()
    send(page, "What is this?", shows="Atlas Large answered without")
    expect(answers(page)).to_contain_text(
        re.compile(r"without (a\.pdf, moon|moon\.png, a)\.\w+, which it can’t read\.")
    )


def changes_settings(response: Response) -> bool:
    """Whether it answers a change, not a read that may still be under way."""
    return response.url.endswith("/api/settings") and response.request.method == "PATCH"


def test_rules_for_tools(demo: Served, open_page: Open) -> None:
    """Each tool is listed with its default; a custom rule is kept and can be removed."""
    page = open_page(f"{demo.url}/settings#tools")
    tools = section(page, "Agents and tools")
    rule = tools.get_by_role("combobox", name="Rule for edit_file")
    expect(rule).to_have_value("")
    with page.expect_response(changes_settings):
        rule.select_option("Deny")
    assert demo.get("/api/settings")["tools"] == {"edit_file": "deny"}
    button(tools, "Add rule").click()
    page.get_by_role("textbox", name="Tool name or pattern").fill("charts__*")
    page.get_by_role("dialog").get_by_text("Deny").click()
    with page.expect_response(changes_settings):
        button(page, "Add").click()
    expect(tools.get_by_role("combobox", name="Rule for charts__*")).to_have_value("deny")
    for name in ("edit_file", "charts__*"):
        with page.expect_response(changes_settings):
            tools.get_by_role("combobox", name=f"Rule for {name}").select_option("")
    assert demo.get("/api/settings")["tools"] == {}


def test_mcp_servers_are_added_and_removed(demo: Served, open_page: Open) -> None:
    """A server is added by URL, tested and removed; those of the configuration file stay."""
    page = open_page(f"{demo.url}/settings#mcp")
    servers = section(page, "MCP servers")
    expect(servers.get_by_role("listitem")).to_have_count(3)
    button(servers, "Add server").click()
    form = page.get_by_role("dialog", name="Add MCP server")
    expect(form).to_contain_text("Lowercase letters, digits, - and _")
    form.get_by_text("Local command").click()
    expect(form.get_by_role("note")).to_contain_text("Local commands need a server password.")
    expect(button(form, "Add")).to_be_disabled()
    form.get_by_text("Remote (HTTP)").click()
    form.get_by_role("textbox", name="Name").fill("weather")
    form.get_by_role("textbox", name="URL").fill("https://weather.example/mcp")
    button(form, "Add").click()
    expect(form).to_have_count(0)
    row = servers.get_by_role("listitem").filter(has_text="weather")
    expect(row).to_contain_text("https://weather.example/mcp")
    expect(row).to_contain_text("1 tool: weather__soundings")  # it was tested when it was added
    button(row, "Remove: weather").click()
    button(page.get_by_role("dialog"), "Remove").click()
    expect(servers.get_by_role("listitem")).to_have_count(3)
    expect(button(servers, "Remove: library")).to_have_count(0)


def test_the_fields_of_a_new_server_are_not_lost_by_escape(demo: Served, open_page: Open) -> None:
    """The dialog asks if something was typed, and only then."""
    page = open_page(f"{demo.url}/settings#mcp")
    servers, question = section(page, "MCP servers"), page.get_by_role("dialog", name="Discard changes?")
    form = page.get_by_role("dialog", name="Add MCP server")
    button(servers, "Add server").click()
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    button(servers, "Add server").click()
    form.get_by_role("textbox", name="Name").fill("weather")
    page.keyboard.press("Escape")
    button(question, "Cancel").click()
    expect(form.get_by_role("textbox", name="Name")).to_have_value("weather")
    page.keyboard.press("Escape")
    button(question, "Discard").click()
    expect(form).to_have_count(0)


def test_new_chats_start_with_the_default_model_again(demo: Served, open_page: Open) -> None:
    """The settings say which model new chats start with, and go back to the default, also to the one that it is."""
    page = open_page(demo.url)
    page.get_by_role("button", name="Model: Atlas Large").click()
    page.get_by_role("option", name="Breeze Small").click()
    page.goto(f"{demo.url}/settings")
    models = section(page, "Models")
    expect(models).to_contain_text("the model that you picked last: Breeze Small.")
    button(models, "Use the default again").click()
    expect(models).to_contain_text("New chats use the model that you picked last")
    button(page, "New chat").click()
    expect(page.get_by_role("button", name="Model: Atlas Large")).to_be_visible()


def test_buttons_that_send_and_stop_look_usable_under_the_pointer(demo: Served, open_page: Open) -> None:
    """They keep a background without transparency, as a disabled one has it."""
    page = open_page(demo.url)
    message_box(page).fill("hello")
    button(page, "Send").hover()
    color = button(page, "Send").evaluate("it => getComputedStyle(it).backgroundColor")
    assert "/" not in color
    assert "rgba" not in color


def test_secrets_of_an_mcp_server_are_kept_and_never_shown(demo: Served, open_page: Open) -> None:
    """The form names what is stored; an empty value keeps it, and a new variable is added beside it."""
    page = open_page(f"{demo.url}/settings#mcp")
    servers = section(page, "MCP servers")
    row = servers.get_by_role("listitem").filter(has_text="harbour")
    expect(row).to_contain_text("Variables: HARBOUR_KEY")
    button(row, "Edit: harbour").click()
    form = page.get_by_role("dialog", name="Edit harbour")
    expect(form.get_by_role("textbox", name="Command")).to_have_value("harbour-mcp --port Brest")
    expect(form.get_by_role("textbox", name="Working directory")).to_have_value("/srv/harbour")
    expect(form.get_by_label("Value of HARBOUR_KEY")).to_have_value("")
    button(form, "Add variable").click()
    form.get_by_role("textbox", name="Name").nth(1).fill("TIDES")
    form.get_by_label("Value of TIDES").fill("s3cret")
    page.route("**/api/mcp/harbour", lambda route: route.fulfill(status=204))  # programs need a password
    with page.expect_request(lambda request: request.method == "PUT") as sent:
        button(form, "Save").click()
    body = {"command": "harbour-mcp", "args": ["--port", "Brest"], "cwd": "/srv/harbour"}
    assert sent.value.post_data_json == {**body, "env": {"HARBOUR_KEY": None, "TIDES": "s3cret"}}
    expect(form).to_have_count(0)


def test_a_password_and_a_token(
    server: Served, open_page: Open, browser: Browser, console_errors: ConsoleErrors
) -> None:
    """Setting a password keeps this page logged in and sends others to the login; tokens are created and revoked."""
    page = open_page(f"{server.url}/settings#access")
    access = section(page, "Password and tokens")
    expect(button(access, "Create token")).to_have_count(0)
    access.get_by_label("New password", exact=True).fill("correct horse")
    access.get_by_label("Repeat new password").fill("correct house")
    button(access, "Set password").click()
    expect(access.get_by_role("alert")).to_contain_text("The passwords don’t match.")
    access.get_by_label("Repeat new password").fill("correct horse")
    button(access, "Set password").click()
    expect(access.get_by_role("status")).to_have_text("Password set. Use it to log in from now on.")
    button(access, "Create token").click()
    page.get_by_role("textbox", name="Name").fill("backup script")
    button(page, "Create").click()
    expect(access).to_contain_text("Copy this token now")
    expect(access.get_by_role("list", name="Tokens").get_by_role("listitem")).to_contain_text("backup script")
    button(access, "Revoke: backup script").click()
    button(page.get_by_role("dialog", name="Revoke “backup script”?"), "Revoke").click()
    expect(access.get_by_role("list", name="Tokens").get_by_role("listitem")).to_have_count(0)
    page.reload()
    expect(access).to_contain_text("Password protection is on.")
    stranger = browser.new_context()
    other = stranger.new_page()
    other.goto(server.url)
    expect(other).to_have_url(re.compile("/login"))
    other.get_by_label("Password").fill("correct horse")
    other.keyboard.press("Enter")
    expect(message_box(other)).to_be_visible()
    KeyFile(server.data_dir).change(
        lambda ring: replace(
            ring, logins=tuple(replace(login, created_at=login.created_at - 400) for login in ring.logins)
        )
    )
    button(access, "Create token").click()
    page.get_by_role("textbox", name="Name").fill("another script")
    button(page, "Create").click()
    asking = page.get_by_role("dialog", name="Confirm your password")
    button(asking, "Cancel").click()
    expect(asking).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)  # nothing went wrong
    expect(page.get_by_role("textbox", name="Name")).to_have_value("another script")
    button(page, "Create").click()
    for password in ("wrong horse", "correct horse"):
        asking.get_by_label("Password").fill(password)
        button(asking, "Continue").click()
        if password == "wrong horse":
            expect(asking).to_contain_text("Wrong password.")
    expect(access.get_by_role("list", name="Tokens")).to_contain_text("another script")
    page.reload()
    devices = access.get_by_role("list", name="Devices")
    expect(devices.get_by_role("listitem")).to_have_count(2)
    expect(devices).to_contain_text("This device")
    devices.get_by_role("button", name=re.compile("^Log out: ")).click()
    expect(devices.get_by_role("listitem")).to_have_count(1)
    other.reload()
    expect(other).to_have_url(re.compile("/login"))
    stranger.close()
    assert axe_violations(page) == []
    button(access, "Log out").click()
    expect(page).to_have_url(re.compile("/login"))
    console_errors.expect("401", "403")


def test_export_and_import(server: Served, open_page: Open) -> None:
    """All chats are exported to one file; importing it leaves what is there alone, and brings back what was deleted."""
    sid = server.session(title="To be kept")
    server.events(server.send(sid, "words")["run"]["id"])
    page = open_page(f"{server.url}/settings#data")
    data = section(page, "Data")
    current = page.get_by_role("navigation", name="Settings").locator("[aria-current]")
    expect(current).to_have_text("Data")  # also where the page ends before it is at the top
    with page.expect_download() as saved:
        data.get_by_role("link", name="Export all chats").click()
    export = saved.value.path().rename(saved.value.path().with_suffix(".jsonl"))
    nav = page.get_by_role("navigation", name="Chats")

    def import_export(summary: str) -> None:
        with page.expect_file_chooser() as chosen:
            button(data, "Import chats").click()
        chosen.value.set_files(export)
        expect(data.get_by_role("status")).to_contain_text(summary)
        expect(nav.get_by_role("link", name="To be kept")).to_have_count(1)

    import_export("0 chats imported, 1 unchanged")
    server.call("DELETE", f"/api/sessions/{sid}", None, 204)
    expect(nav.get_by_role("link", name="To be kept")).to_have_count(0)
    import_export("1 chat imported")


def test_import_from_another_application(server: Served, open_page: Open, tmp_path: Path) -> None:
    """A ChatGPT export is detected and imported once, what was skipped is listed, and an error says what is wrong."""
    page = open_page(f"{server.url}/settings#data")
    data = section(page, "Data")
    status, fixtures = data.get_by_role("status"), Path(__file__).parents[1] / "fixtures" / "imports"

    def choose(file: Path) -> None:
        with page.expect_file_chooser() as chosen:
            button(data, "Import chats").click()
        chosen.value.set_files(file)

    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/import/file?*", hold)
    choose(fixtures / "chatgpt-conversations.json")
    expect(status.get_by_role("progressbar", name="Reading…")).to_be_visible()
    expect(button(data, "Import chats")).to_be_disabled()
    assert axe_violations(page) == []
    held[0].continue_()
    page.unroute("**/api/import/file?*")
    expect(status).to_contain_text("1 chat imported")
    expect(status.get_by_role("progressbar")).to_have_count(0)
    expect(status.get_by_role("link", name="Tides")).to_be_visible()
    status.get_by_text("2 skipped").click()
    expect(status).to_contain_text("An entry without a mapping: it has no messages")
    assert axe_violations(page) == []
    nav = page.get_by_role("navigation", name="Chats")
    expect(nav.get_by_role("link", name="Tides")).to_have_count(1)
    choose(fixtures / "chatgpt-conversations.json")
    expect(status).to_contain_text("0 chats imported, 1 unchanged")
    broken = tmp_path / "broken.json"
    broken.write_text('[{"chat_messages": 5, "uuid": "x"}]')
    data.get_by_label("Import from").select_option("Claude")
    choose(broken)
    expect(data.get_by_role("alert")).to_have_text(
        "broken.json, item 1 (line 1), field chat_messages: expected a list, found a number. Nothing was imported."
    )
    choose(fixtures / "chatgpt-conversations.json")
    expect(data.get_by_role("alert")).to_have_text(
        "chatgpt-conversations.json looks like a ChatGPT export. Choose ChatGPT as the source. Nothing was imported."
    )
    expect(nav.get_by_role("link", name="Tides")).to_have_count(1)
    nav.get_by_role("link", name="Tides").click()
    expect(page.get_by_text("When is high tide on this chart?")).to_be_visible()
    expect(page.get_by_text("High tide is at 12:00.")).to_be_visible()


def test_a_file_that_an_import_lacks(server: Served, open_page: Open, tmp_path: Path) -> None:
    """It is named with the reason, without a link or a broken image, and a changed question goes without it."""
    headers = {"Content-Type": "application/octet-stream"}
    export = write_files(tmp_path / "export.zip")
    assert "event: done" in server.http.post("/api/import/file", content=export, headers=headers).text
    page = open_page(server.url)
    page.get_by_role("navigation", name="Chats").get_by_role("link", name="Tides").click()
    question = page.get_by_role("article", name="You")
    expect(question).to_contain_text("file-aNot in the export")
    expect(question).to_contain_text("file-b.binNot imported")
    expect(question.get_by_role("link")).to_have_count(1)
    expect(question.get_by_role("img")).to_have_count(0)
    question.hover()
    button(question, "Edit").click()
    box = page.get_by_role("textbox", name="Edit message")
    box.fill(json.dumps([{"say": "Seen."}]))
    button(page.get_by_role("article", name="You"), "Send").click()
    expect(answers(page)).to_contain_text("Seen.")
    expect(page.get_by_role("article", name="You")).to_contain_text("file-c.txt")
    expect(page.get_by_role("article", name="You")).not_to_contain_text("file-a")


@pytest.mark.soak
def test_dialogs_and_menus_have_no_accessibility_violations(demo: Served, open_page: Open) -> None:
    """No accessibility violation in full settings, dialogs, menus, pickers and panes, light and dark."""
    demo.events(demo.send(demo.session(title="Knots"), "What is a good knot for a wet rope?")["run"]["id"])
    page = open_page(f"{demo.url}/settings")
    expect(page.get_by_text("Server is healthy")).to_be_visible()
    expect(section(page, "MCP servers")).to_contain_text("charts.example")
    assert axe_violations(page) == []
    button(page, "Add server").click()
    assert axe_violations(page) == []
    page.keyboard.press("Escape")
    page.goto(demo.url)
    page.get_by_role("button", name="Model: ").click()
    expect(page.get_by_role("combobox", name="Search models")).to_be_focused()
    assert axe_violations(page) == []
    page.keyboard.press("Escape")
    row = page.get_by_role("navigation", name="Chats").get_by_role("listitem").filter(has_text="Knots").first
    row.hover()
    button(row, "Options for Knots").click()
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    assert axe_violations(page) == []
    page.goto(f"{demo.url}/compare")
    page.get_by_role("textbox", name="Prompt").fill("Write one sentence about the sea.")
    button(page, "Compare").click()
    expect(button(page, "Open in chat")).to_have_count(2)
    assert axe_violations(page) == []


def test_the_app_can_be_installed(demo: Served, playwright: Playwright, tmp_path: Path) -> None:
    """Chromium finds no obstacle to installing the page as an app."""
    context = playwright.chromium.launch_persistent_context(
        tmp_path / "profile", executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
    )
    page = context.new_page()
    page.goto(demo.url)
    expect(message_box(page)).to_be_visible()
    chromium = context.new_cdp_session(page)
    manifest = chromium.send("Page.getAppManifest")
    assert manifest["errors"] == []
    assert manifest["url"].startswith(demo.url)
    assert chromium.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
    context.close()


def test_a_question_of_a_running_tool_is_a_form(demo: Served, open_page: Open) -> None:
    """The fields come from the server's schema, a reload keeps the question, and the answer goes to the tool."""
    page = open_page(demo.url)
    page.get_by_role("textbox", name="Message").fill("Book a berth.")
    page.keyboard.press("Enter")
    form = page.get_by_role("form", name="Question")
    expect(form).to_contain_text("harbour asks you")
    page.reload()
    expect(form.get_by_role("spinbutton", name="Nights")).to_have_value("1")
    form.get_by_role("textbox", name="Berth").fill("North 4")
    form.get_by_role("combobox", name="Side").select_option("port")
    form.get_by_role("checkbox", name="Shore power").check()
    button(form, "Submit").click()
    expect(form).to_have_count(0)
    expect(page.get_by_role("article", name="Assistant")).to_contain_text("Booked.")
    sid = page.url.rpartition("/")[2]
    (tool,) = [part for part in demo.answer(sid)["parts"] if part["type"] == "tool"]
    assert tool["result"] == {"action": "accept", "name": "North 4", "nights": 1, "side": "port", "power": True}


def test_prompts_of_mcp_servers_are_commands(demo: Served, open_page: Open) -> None:
    """A prompt without arguments is inserted at once; the arguments of another are asked for first."""
    page = open_page(demo.url)
    box = page.get_by_role("textbox", name="Message")
    box.fill("/charts:t")
    page.get_by_role("option", name="/charts:tides").click()
    expect(box).to_have_value("When is high water today?")
    box.fill("/charts:p")
    page.get_by_role("option", name="/charts:passage").click()
    form = page.get_by_role("dialog", name="/charts:passage")
    form.get_by_role("textbox", name="port").fill("Brest")
    button(form, "Insert").click()
    expect(box).to_have_value("Plan a passage from Brest.")
