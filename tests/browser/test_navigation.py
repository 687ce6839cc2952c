"""Finding one's way: sections, search, the palette, login, drops, commands, the focus and what screen readers hear."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import seed
from tests.browser.chat_page import answers, button, message_box, send, session_of, wait_idle
from tests.browser.conftest import ConsoleErrors, Open, Start
from tests.http.client import Served

DROP = """target => {
  const data = new DataTransfer();
  data.items.add(new File(["high at six"], "notes.txt", {type: "text/plain"}));
  const fire = name => target.dispatchEvent(
    new DragEvent(name, {dataTransfer: data, bubbles: true, cancelable: true}));
  return [fire("dragover"), fire("drop")];  // false: the page took it, so the browser does not open the file
}"""


@pytest.fixture
def server(start: Start) -> Served:
    """A process of its own: some of these tests leave a password or settings behind."""
    return start()


def test_search_and_palette_reach_every_chat(start: Start, tmp_path: Path, open_page: Open) -> None:
    """The search has more than its first page, and the palette finds chats that the list has not loaded."""
    seed.seed_sessions(tmp_path / "data", 130)
    server = start()
    page = open_page(server.url)
    page.get_by_role("searchbox", name="Search chats").fill("Session")
    results = page.get_by_role("region", name="Search results")
    expect(results.get_by_role("link").first).to_be_visible()
    found = page.evaluate("""async () => {
        const list = document.querySelector("nav[aria-label=Chats] [data-scroll-container]");
        const had = new Set();
        for (let turn = 0; turn < 2000 && had.size < 130; turn++) {
            for (const row of list.querySelectorAll("li a")) had.add(row.getAttribute("href"));
            list.scrollTop += list.clientHeight / 2;
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        }
        return had.size;
    }""")
    assert found == 130
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search chats and commands").fill("Session 3")
    page.get_by_role("option", name="Session 3", exact=True).click()
    page.wait_for_url("**/c/ses_000003")


def test_the_keyboard_moves_from_the_search_to_a_chat(server: Served, open_page: Open) -> None:
    """The arrow keys move between the results, Enter opens the first one, and a new chat has the focus in its box."""
    for title in ("Tides of Brest", "Tides of Cork"):
        server.session(title=title)
    page = open_page(server.url)
    search = page.get_by_role("searchbox", name="Search chats")
    search.fill("tides")
    results = page.get_by_role("region", name="Search results").get_by_role("link")
    expect(results).to_have_count(2)
    search.press("ArrowDown")
    expect(results.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(results.last).to_be_focused()
    page.keyboard.press("Control+Shift+O")
    expect(message_box(page)).to_be_focused()
    search.fill("cork")
    search.press("Enter")
    expect(page.get_by_role("heading", name="Tides of Cork")).to_be_visible()
    page.keyboard.press("Control+k")
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options.first).to_have_text("Tides of Brest")  # the chat before this one
    expect(page.get_by_role("option", name="Settings: Usage")).to_have_count(0)
    page.get_by_role("combobox", name="Search chats and commands").fill("share")
    page.get_by_role("option", name="Share chat").click()
    button(page.get_by_role("dialog", name="Share chat"), "Cancel").click()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search chats and commands").fill("usage")
    page.get_by_role("option", name="Settings: Usage").click()
    page.wait_for_url("**/settings#usage")


def test_a_search_result_opens_at_the_message(start: Start, tmp_path: Path, open_page: Open) -> None:
    """A hit in an old message of a long chat is loaded, scrolled to and marked; a later one too."""
    seed.seed_messages(tmp_path / "data", 400)
    server = start()
    page = open_page(server.url)
    for number in (137, 102):
        page.get_by_role("searchbox", name="Search chats").fill(f"number {number}")
        page.get_by_role("region", name="Search results").get_by_role("link", name=f"number {number}").click()
        hit = page.locator(f"article[data-id=msg_{number:06}]")
        expect(hit).to_be_in_viewport()
        expect(hit).to_have_class(re.compile("revealed"))
    page.get_by_role("searchbox", name="Search chats").fill("")
    button(page, "Scroll to bottom").click()
    expect(answers(page).last).to_contain_text("Message number 400.")


def log_in(page: Page) -> None:
    page.get_by_label("Password").fill("correct horse")
    page.keyboard.press("Enter")


def test_login_leads_back(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A page that needs a login, and one whose login has expired, are where the login leads to."""
    sid = server.session(title="Where I was")
    server.events(server.send(sid, "hello")["run"]["id"])
    server.http.post("/api/password", json={"new": "correct horse"}).raise_for_status()
    page = open_page(f"{server.url}/c/{sid}#here")
    expect(page).to_have_url(re.compile(r"/login\?next="))
    log_in(page)
    expect(answers(page)).to_contain_text("hello")
    assert page.url == f"{server.url}/c/{sid}#here"
    message_box(page).fill("sent without a login")
    page.context.clear_cookies()
    message_box(page).press("Enter")
    expect(page).to_have_url(re.compile(r"/login\?next="))
    expect(page.get_by_role("status")).to_contain_text("You were logged out")
    log_in(page)
    expect(answers(page)).to_have_count(2)  # what was sent without a login is sent after it
    assert page.url == f"{server.url}/c/{sid}#here"
    page.goto(f"{server.url}/settings#access")
    page.evaluate("() => localStorage.setItem('holdfast.theme', 'dark')")
    button(page, "Log out").click()
    expect(page).to_have_url(re.compile(r"/login"))
    expect(page.get_by_role("status")).to_have_text("You’re logged out.")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert page.evaluate("() => getComputedStyle(document.documentElement).colorScheme") == "dark"  # as it was chosen
    page.goto(f"{server.url}/login?next=//evil.example/")
    log_in(page)
    expect(page).to_have_url(f"{server.url}/")
    console_errors.expect("401")


def test_login_waits_while_others_guess(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A login that a proxy gave up is repeated by the page until the password is checked."""
    server.http.post("/api/password", json={"new": "correct horse"}).raise_for_status()
    page = open_page(f"{server.url}/login")
    page.route("**/api/login", lambda route: route.fulfill(status=504, body="<h1>Gateway timeout</h1>"), times=1)
    log_in(page)
    expect(page.get_by_role("status")).to_contain_text("Your password will be checked in a moment")
    expect(page).to_have_url(f"{server.url}/")
    console_errors.expect("504")


def test_files_dropped_anywhere_are_attached(server: Served, open_page: Open) -> None:
    """A file dropped next to the message box is attached; on other screens it is not opened."""
    page = open_page(f"{server.url}/c/{server.session()}")
    assert page.get_by_role("region", name="Conversation").evaluate(DROP) == [False, False]
    expect(page.get_by_role("list", name="Attachments")).to_contain_text("notes.txt")
    page.goto(f"{server.url}/settings")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    assert page.get_by_role("main").evaluate(DROP) == [False, False]


def test_an_unknown_command_is_not_sent(server: Served, open_page: Open) -> None:
    """A slash and an unknown word are refused unless the user insists; a path is a message."""
    page = open_page(server.url)
    message_box(page).fill("/summarize this")
    message_box(page).press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Unknown command: /summarize")
    assert server.get("/api/sessions")["items"] == []
    button(page, "Send as message").click()
    expect(answers(page)).to_contain_text("/summarize this")
    wait_idle(page)
    send(page, "/etc/hosts", shows="/etc/hosts")
    wait_idle(page)
    message_box(page).fill("/undo this")
    message_box(page).press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("/undo takes no arguments")
    message_box(page).fill("/undo")
    button(page, "Send").click()  # a command, also with the button
    expect(page.get_by_role("article")).to_have_count(2)
    message_box(page).fill("/")
    expect(page.get_by_role("listbox", name="Commands")).to_be_visible()


def test_the_focus_stays_in_the_message_box(server: Served, open_page: Open) -> None:
    """After Send was clicked one can go on typing, in a new chat and in an open one."""
    page = open_page(server.url)
    for text in ("first", "second"):
        send(page, text, shows=text)
        expect(message_box(page)).to_be_focused()
        wait_idle(page)


def test_rename_selects_the_title(server: Served, open_page: Open) -> None:
    """What is typed in the rename dialog replaces the old title."""
    sid = server.session(title="Old title")
    page = open_page(f"{server.url}/c/{sid}")
    button(page.get_by_role("main"), "Options for Old title").click()
    page.get_by_role("menuitem", name="Rename").click()
    expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    page.keyboard.type("New title")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New title", exact=True)).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search chats and commands").fill("rename")
    page.keyboard.press("Enter")
    page.get_by_role("textbox", name="Title").fill("Newest title")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Newest title", exact=True)).to_be_visible()


def test_a_chat_is_moved_to_a_project_of_the_list(server: Served, open_page: Open) -> None:
    """Projects that exist are offered, so that a typo makes no new one; a new one is made by choice."""
    server.call("PATCH", f"/api/sessions/{server.session(title='Other')}", {"project": "Harbour"})
    sid = server.session(title="Kept")
    page = open_page(f"{server.url}/c/{sid}")
    for project, name in (("Harbour", None), ("New project…", "Lighthouse"), ("No project", None)):
        choose(page, "Move to project")
        form = page.get_by_role("dialog", name="Move to project")
        form.get_by_role("combobox", name="Project").select_option(label=project)
        if name is not None:
            form.get_by_role("textbox").fill(name)
        with page.expect_response(lambda response: response.request.method == "PATCH"):
            button(form, "Move").click()
        expected = {"No project": None, "Harbour": "Harbour"}.get(project, name)
        assert server.get(f"/api/sessions/{sid}")["project"] == expected
        said = "Removed from Lighthouse" if expected is None else f"Moved to {expected}"
        expect(page.get_by_role("status", name="Confirmation")).to_contain_text(said)


def test_the_menu_of_a_project(server: Served, open_page: Open) -> None:
    """A chat is started in a project; renaming and deleting it reaches all its chats, archived ones too."""
    old = server.session(title="Old")
    server.call("PATCH", f"/api/sessions/{old}", {"project": "Harbour", "archived": True})
    listed = server.session(title="Listed")
    server.call("PATCH", f"/api/sessions/{listed}", {"project": "Harbour"})
    page = open_page(server.url)
    button(page, "Options for project Harbour").click()
    page.get_by_role("menuitem", name="New chat").click()
    send(page, "hello", shows="hello")
    sid = session_of(page)
    assert server.get(f"/api/sessions/{sid}")["project"] == "Harbour"
    expect(page.get_by_title("Project: Harbour")).to_be_visible()
    group = page.get_by_role("region", name="Harbour")
    expect(group.get_by_role("listitem")).to_have_count(2)
    button(group, "Options for project Harbour").click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_role("textbox", name="Name").fill("Port")
    page.keyboard.press("Enter")
    confirmation = page.get_by_role("status", name="Confirmation")
    expect(confirmation).to_contain_text("Renamed to Port")
    expect(page.get_by_title("Project: Port")).to_be_visible()
    assert {server.get(f"/api/sessions/{each}")["project"] for each in (old, listed, sid)} == {"Port"}
    button(page, "Options for project Port").click()
    page.get_by_role("menuitem", name="Delete").click()
    button(page.get_by_role("dialog"), "Delete").click()
    expect(confirmation).to_contain_text("Project deleted")
    assert {server.get(f"/api/sessions/{each}")["project"] for each in (old, listed, sid)} == {None}
    button(page, "New chat").click()
    send(page, "elsewhere", shows="elsewhere")
    assert server.get(f"/api/sessions/{session_of(page)}")["project"] is None


def test_the_drawer_by_keyboard(server: Served, open_page: Open) -> None:
    """On a narrow screen the drawer takes the focus; Escape and Back close it, and leave the page where it was."""
    server.session(title="Elsewhere")
    page = open_page(f"{server.url}/activity", width=390)
    page.goto(f"{server.url}/settings")
    opener, closer = button(page, "Open sidebar"), button(page.get_by_role("navigation", name="Chats"), "Close sidebar")
    opener.press("Enter")
    expect(closer).to_be_focused()
    page.keyboard.press("Escape")
    expect(closer).not_to_be_visible()
    expect(opener).to_be_focused()
    opener.press("Enter")
    expect(closer).to_be_focused()
    page.go_back()
    expect(closer).not_to_be_visible()
    expect(page).to_have_url(f"{server.url}/settings")
    opener.press("Enter")
    page.get_by_role("navigation", name="Chats").get_by_role("link", name="Elsewhere").click()
    expect(page.get_by_role("heading", name="Elsewhere")).to_be_visible()
    expect(closer).not_to_be_visible()
    page.go_back()
    expect(page).to_have_url(f"{server.url}/settings")


def test_shortcuts(server: Served, open_page: Open) -> None:
    """A question mark lists the shortcuts, except where it is typed; one opens a new chat, one hides the sidebar."""
    page = open_page(f"{server.url}/activity")
    expect(page.get_by_role("heading", name="Activity")).to_be_visible()
    page.keyboard.press("?")
    listed = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(listed).to_contain_text("New chat")
    button(listed, "Close").click()
    page.keyboard.press("Control+Shift+O")
    expect(message_box(page)).to_be_focused()
    page.keyboard.press("?")
    expect(message_box(page)).to_have_value("?")
    expect(listed).to_have_count(0)
    chats = page.get_by_role("navigation", name="Chats")
    page.keyboard.press("Control+Shift+S")
    expect(chats).not_to_be_visible()
    page.reload()
    expect(button(page, "Show sidebar")).to_be_visible()
    expect(chats).not_to_be_visible()
    button(page, "Show sidebar").click()
    expect(chats).to_be_visible()


def choose(page: Page, item: str) -> None:
    button(page.get_by_role("main"), "Options for Kept").click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def test_a_chat_is_archived_and_brought_back(server: Served, open_page: Open) -> None:
    """Archiving says so; the archive has a heading; a chat that is open stays open when it is brought back; the
    question whether to delete it names it."""
    page = open_page(f"{server.url}/c/{server.session(title='Kept')}")
    choose(page, "Archive")
    expect(page.get_by_role("status", name="Confirmation")).to_contain_text("Chat archived")
    expect(page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    chats = page.get_by_role("navigation", name="Chats")
    expect(chats).to_contain_text("No active chats")
    archived = page.get_by_role("heading", name="Archived chats")
    button(page, "Archived").click()
    expect(archived).to_be_visible()
    button(page, "Back to chats").click()
    expect(archived).to_have_count(0)
    button(page, "Archived").click()
    button(page, "New chat").click()
    expect(archived).to_have_count(0)  # where the new chat will be
    button(page, "Archived").click()
    expect(archived).to_be_visible()
    chats.get_by_role("link", name="Kept").click()
    button(page.get_by_role("note", name="Archived"), "Unarchive").click()
    expect(archived).to_have_count(0)
    expect(page.get_by_role("note", name="Archived")).to_have_count(0)
    choose(page, "Archive")
    button(page, "Archived").click()
    chats.get_by_role("link", name="Kept").click()
    choose(page, "Unarchive")
    expect(page.get_by_role("heading", name="Archived chats")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Chats").get_by_role("link", name="Kept")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("heading", name="Kept")).to_be_visible()
    choose(page, "Delete")
    expect(page.get_by_role("dialog", name="Delete “Kept”?")).to_be_visible()


def test_answers_are_announced(server: Served, open_page: Open) -> None:
    """A live region says that an answer is being generated, then what it says or how it ended; not each word of it,
    and nothing that was there before."""
    page = open_page(server.url)
    send(page, [{"say": "## Half "}, {"meet": "g"}, {"say": "and **whole**."}], shows="Half")
    expect(page.get_by_role("heading", name="Half", level=3)).to_be_visible()  # below the title of the chat
    region = page.locator("[aria-live=polite][data-announcement]")
    expect(region).to_have_text("Generating answer…")
    server.order(open="g")
    expect(region).to_have_text("Half and whole.")
    send(page, [{"say": "Begun."}, {"hang": True}], shows="Begun.")
    button(page, "Stop").click()
    expect(region).to_have_text("Answer stopped.")
    button(page, "Undo last message").click()
    expect(region).to_have_text("")
    button(page, "Redo").first.click()
    page.reload()
    expect(answers(page).last).to_contain_text("Begun.")
    expect(region).to_have_text("")


def test_the_list_scrolls_to_a_new_branch(server: Served, open_page: Open) -> None:
    """A branch of a chat that is far down begins at the top of the list, and is shown there."""
    old = server.session(title="Old")
    server.events(server.send(old, "words")["run"]["id"])
    for n in range(45):
        server.session(title=f"Chat {n}")
    page = open_page(f"{server.url}/c/{old}")
    links = page.get_by_role("navigation", name="Chats").get_by_role("link")
    links.get_by_text("Old", exact=True).scroll_into_view_if_needed()
    expect(links.get_by_text("Chat 44", exact=True)).not_to_be_in_viewport()
    button(page, "Branch in new chat").click()
    expect(links.get_by_text("Old (branch)", exact=True)).to_be_in_viewport()
