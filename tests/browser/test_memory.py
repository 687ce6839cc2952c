"""Memory on the page: save a chat to memory, and search, edit, pin and delete memories."""

from playwright.sync_api import expect

from tests.browser.chat_page import answers, axe_violations, button, check_transcript, send, session_of, wait_idle
from tests.browser.conftest import Open, Start
from tests.http.streams import until


def test_a_chat_is_remembered_and_recalled_in_the_next(start: Start, open_page: Open) -> None:
    """M2, M3: a chat shows what is not remembered yet; saving remembers it; the next chat shows what was recalled."""
    server = start(remembers=True)
    page = open_page(server.url)
    send(page, "I live in Lisbon.", shows="I live in Lisbon.")
    wait_idle(page)
    first = session_of(page)
    head = page.get_by_role("main")
    head.get_by_role("button", name="Options for").click()
    page.get_by_role("menuitem", name="Memory").click()
    panel = page.get_by_role("dialog", name="Chat memory")
    expect(panel.get_by_role("status")).to_contain_text("1 message and its answer are not in memory yet")
    assert axe_violations(page) == []
    button(panel, "Save now").click()
    expect(panel.get_by_role("status")).to_contain_text("Up to date. 1 memory from this chat.")
    expect(panel.get_by_role("status").get_by_role("listitem")).to_contain_text("Lives in Lisbon")
    expect(button(panel, "Save now")).to_be_disabled()
    button(panel, "Close").click()
    button(page, "New chat").click()
    expect(page.get_by_role("article")).to_have_count(0)
    send(page, "Where do I live?", shows="Where do I live?")
    wait_idle(page)
    card = answers(page).get_by_text("Used 1 memory")
    expect(card).to_be_visible()
    card.click()
    expect(answers(page)).to_contain_text("Lives in Lisbon")
    expect(answers(page).get_by_role("link", name="Source chat")).to_have_attribute("href", f"/c/{first}")
    check_transcript(page, server)


def test_memories_are_searched_edited_pinned_and_deleted(start: Start, open_page: Open) -> None:
    """All memories can be searched, edited, pinned and deleted, also together with their chat."""
    server = start(remembers=True, engine={"sweep_interval": 0.2})
    sid = server.session(title="Secret")
    for said in ("I live in Lisbon.", "I love olives."):
        server.events(server.send(sid, said)["run"]["id"])
    server.post(f"/api/sessions/{sid}/memory/commit", {})
    page = open_page(f"{server.url}/settings#memory")
    memory = page.get_by_role("region", name="Memory", exact=True)
    rows = memory.get_by_role("list", name="Memories").get_by_role("listitem")
    expect(rows).to_have_count(2)
    assert axe_violations(page) == []
    memory.get_by_role("searchbox", name="Search memories").fill("olives")
    expect(rows).to_have_count(1)
    rows.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Memory").fill("Likes green olives.")
    button(page, "Save").click()
    expect(rows).to_contain_text("green olives")
    rows.get_by_role("button", name="Pin").click()
    expect(rows).to_contain_text("Pinned")
    memory.get_by_role("searchbox", name="Search memories").fill("")
    expect(rows).to_have_count(2)
    rows.filter(has_text="Lisbon").get_by_role("button", name="Delete").click()
    button(page.get_by_role("dialog", name="Delete this memory?"), "Delete").click()
    expect(rows).to_have_count(1)
    found = server.get("/api/memory")["items"]
    assert [(fact["text"], fact["pinned"]) for fact in found] == [("Likes green olives.", True)]
    page.goto(f"{server.url}/c/{sid}")
    page.get_by_role("main").get_by_role("button", name="Options for Secret").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("checkbox", name="Also delete its memories").check()
    button(page.get_by_role("dialog"), "Delete").click()
    expect(page).to_have_url(f"{server.url}/")
    until(lambda: server.get("/api/memory")["items"], lambda facts: facts == [])


def test_a_memory_is_added_by_hand(start: Start, open_page: Open) -> None:
    """It is listed at once, says that it comes from no chat, and is there after a reload."""
    server = start(remembers=True)
    server.post("/api/setup/done", expect=204)
    page = open_page(f"{server.url}/settings#memory")
    memory = page.get_by_role("region", name="Memory", exact=True)
    button(memory, "Add memory").click()
    page.get_by_role("textbox", name="Memory").fill("Has a boat.")
    button(page, "Add").click()
    row = memory.get_by_role("listitem").filter(has_text="Has a boat.")
    expect(row).to_contain_text("Added by you")
    expect(row.get_by_role("link")).to_have_count(0)
    page.reload()
    expect(row).to_be_visible()


def test_memories_are_deleted_with_a_chat_only_where_there_can_be_some(start: Start, open_page: Open) -> None:
    """M7: a chat without turns has none, so nothing is offered."""
    served = start(remembers=True)
    sid = served.session(title="Empty")
    page = open_page(f"{served.url}/c/{sid}")
    page.get_by_role("main").get_by_role("button", name="Options for Empty").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("Delete “Empty”?")
    expect(page.get_by_role("checkbox", name="Also delete its memories")).to_have_count(0)
