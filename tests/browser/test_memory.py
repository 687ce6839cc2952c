"""Memory on the page: what is remembered, of which chat, and how to have it otherwise."""

from playwright.sync_api import expect

from tests.browser.conftest import Open, Start
from tests.browser.see import answers, axe, button, finished, same, send, session_of
from tests.http.streams import until


def test_a_chat_is_remembered_and_the_next_one_is_told(start: Start, open_page: Open) -> None:
    """M2, M3: a chat says what is not remembered yet; Remember now does it; the next one shows what it was told."""
    server = start(remembers=True)
    page = open_page(server.url)
    send(page, "I live in Lisbon.")
    expect(answers(page)).to_contain_text("I live in Lisbon.")
    finished(page)
    first = session_of(page)
    head = page.get_by_role("main")
    head.get_by_role("button", name="More about").click()
    page.get_by_role("menuitem", name="Memory").click()
    panel = page.get_by_role("dialog", name="Memory of this chat")
    expect(panel.get_by_role("status")).to_contain_text("1 turn not yet")
    assert axe(page) == []
    button(panel, "Remember now").click()
    expect(panel.get_by_role("status")).to_contain_text("1 turn of it is remembered. Nothing new")
    expect(button(panel, "Remember now")).to_be_disabled()
    page.keyboard.press("Escape")
    button(page, "New chat").click()
    expect(page.get_by_role("article")).to_have_count(0)
    send(page, "Where do I live?")
    expect(answers(page)).to_contain_text("Where do I live?")
    finished(page)
    card = answers(page).get_by_text("Remembered 1 thing")
    expect(card).to_be_visible()
    card.click()
    expect(answers(page)).to_contain_text("lives in Lisbon")
    expect(answers(page).get_by_role("link", name="its chat")).to_have_attribute("href", f"/c/{first}")
    same(page, server, session_of(page))


def test_facts_are_found_changed_pinned_and_forgotten(start: Start, open_page: Open) -> None:
    """Everything that is remembered can be looked for, put better, pinned and erased."""
    server = start(remembers=True)
    sid = server.session()
    for said in ("I live in Lisbon.", "I love olives."):
        server.events(server.send(sid, said)["run"]["id"])
    server.post(f"/api/sessions/{sid}/memory/commit", {})
    page = open_page(f"{server.url}/settings#memory")
    memory = page.get_by_role("region", name="Memory", exact=True)
    rows = memory.get_by_role("list", name="Remembered").get_by_role("listitem")
    expect(rows).to_have_count(2)
    assert axe(page) == []
    memory.get_by_role("searchbox", name="Search memory").fill("olives")
    expect(rows).to_have_count(1)
    rows.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="In words").fill("The person likes green olives.")
    button(page, "Save").click()
    expect(rows).to_contain_text("green olives")
    rows.get_by_role("button", name="Pin").click()
    expect(rows).to_contain_text("pinned")
    memory.get_by_role("searchbox", name="Search memory").fill("")
    expect(rows).to_have_count(2)
    rows.filter(has_text="Lisbon").get_by_role("button", name="Forget").click()
    expect(rows).to_have_count(1)
    found = server.get("/api/memory")["items"]
    assert [(fact["text"], fact["pinned"]) for fact in found] == [("The person likes green olives.", True)]


def test_a_chat_is_deleted_and_forgotten(start: Start, open_page: Open) -> None:
    """Whoever deletes a chat says whether what was learnt from it goes too."""
    server = start(remembers=True, engine={"sweep": 0.2})
    sid = server.session(title="Secret")
    server.events(server.send(sid, "I live in Lisbon.")["run"]["id"])
    server.post(f"/api/sessions/{sid}/memory/commit", {})
    page = open_page(f"{server.url}/c/{sid}")
    page.get_by_role("main").get_by_role("button", name="More about Secret").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("checkbox", name="Forget what was learnt").check()
    button(page.get_by_role("dialog"), "Delete").click()
    expect(page).to_have_url(f"{server.url}/")
    until(lambda: server.get("/api/memory")["items"], lambda facts: facts == [])
