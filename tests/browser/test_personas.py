"""Personas in the page."""

from playwright.sync_api import expect

from tests.browser.chat_page import answers, axe_violations, button, check_transcript, send, session_of
from tests.browser.conftest import Open
from tests.browser.sizes import on_desk
from tests.http.client import Served

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x56\xc7\x2f\x0d\x00\x00\x00\x00IEND\xaeB`\x82"
)


@on_desk
def test_a_persona_is_made_chats_and_is_deleted(server: Served, open_page: Open, size: tuple[int, int]) -> None:
    """Its answers show its name, also after a reload and when it is gone."""
    page = open_page(f"{server.url}/settings#personas", *size)
    section = page.get_by_role("region", name="Personas")
    section.get_by_role("button", name="Add persona").click()
    dialog = page.get_by_role("dialog", name="Add persona")
    dialog.get_by_label("Name", exact=True).fill("Pilot")
    dialog.get_by_label("Emoji").fill("⚓")
    dialog.get_by_label("Instructions").fill("Know the tides.")
    dialog.get_by_role("radio", name="Off").check(force=True)
    assert axe_violations(page) == []
    button(dialog, "Add").click()
    expect(section.get_by_text("Tools off")).to_be_visible()
    assert axe_violations(page) == []
    button(section, "New chat: Pilot").click()
    expect(page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    expect(page.get_by_title("Persona: ")).to_contain_text("Pilot")
    send(page, "High tide", shows="High tide")
    expect(answers(page)).to_contain_text("Pilot")
    sid = session_of(page)
    assert server.answer(sid)["persona"]["name"] == "Pilot"
    assert axe_violations(page) == []
    page.goto(f"{server.url}/settings#personas")
    button(section, "Delete: Pilot").click()
    button(page.get_by_role("dialog"), "Delete").click()
    expect(section.get_by_text("Pilot")).to_have_count(0)
    page.goto(f"{server.url}/c/{sid}")
    expect(answers(page)).to_contain_text("Pilot")
    expect(page.get_by_title("Persona: ")).to_have_count(0)
    check_transcript(page, server)


def test_the_persona_of_a_chat_is_changed(server: Served, open_page: Open) -> None:
    """In the settings of the chat, by keyboard; an uploaded picture is shown on its answers."""
    page = open_page(f"{server.url}/settings#personas")
    section = page.get_by_role("region", name="Personas")
    section.get_by_role("button", name="Add persona").click()
    dialog = page.get_by_role("dialog", name="Add persona")
    dialog.get_by_label("Name", exact=True).fill("Painter")
    dialog.locator("input[type=file]").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": PNG})
    expect(button(dialog, "Remove image")).to_be_visible()
    button(dialog, "Add").click()
    expect(section.get_by_text("Painter")).to_be_visible()
    (made,) = server.get("/api/personas")["items"]
    sid = server.session(title="Colors")
    page.goto(f"{server.url}/c/{sid}")
    button(page, "Chat settings").click()
    settings = page.get_by_role("dialog", name="Chat settings")
    settings.get_by_label("Persona", exact=True).select_option(label="Painter")
    assert axe_violations(page) == []
    button(settings, "Save").click()
    expect(page.get_by_title("Persona: ")).to_contain_text("Painter")
    send(page, "Blue", shows="Blue")
    expect(answers(page).locator("img")).to_have_attribute("src", f"/api/files/{made['picture']}/content")
    assert server.get(f"/api/sessions/{sid}")["persona"] == made["id"]
