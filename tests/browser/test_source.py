"""Sessions that came through another door are shown like others, and say so."""

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.see import answers, finished, same, send
from tests.http.client import Served


def test_what_a_program_asked_has_a_badge_and_can_be_continued(server: Served, open_page: Open) -> None:
    """A chat of an OpenAI client is in the list with its badge; a person goes on in it."""
    asked = {"model": "agent:chat", "messages": [{"role": "user", "content": '[{"say": "By a program."}]'}]}
    sid = server.http.post("/v1/chat/completions", json=asked).headers["holdfast-session"]
    page = open_page(server.url)
    row = page.get_by_role("navigation", name="Sessions").get_by_role("listitem").first
    expect(row.get_by_text("API", exact=True)).to_be_visible()
    page.goto(f"{server.url}/c/{sid}")
    expect(page.get_by_role("main").get_by_text("API", exact=True)).to_be_visible()
    send(page, [{"say": "By a person."}])
    expect(answers(page).get_by_text("By a person.")).to_be_visible()
    finished(page)
    same(page, server, sid)
