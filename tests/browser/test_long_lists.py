"""Long sessions and lists: the page stays small, what is read stays in place, streaming stays smooth."""

import json
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import seed
from tests.browser.chat_page import answers, button, record_most, send, wait_idle
from tests.browser.conftest import Open, Start

REPORT: Final = Path(__file__).parents[2] / "build" / "browser-performance.json"
"""Long tasks while 200 tokens per second stream in. Reported, not asserted: the machine may be busy."""
MAX_RENDERED: Final = 150
"""Messages in the page at once, however many there are."""

_TOP: Final = """async box => {
  for (;;) {  // chunks are rendered when they come near
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const line = box.getBoundingClientRect().top;
    const first = [...box.querySelectorAll("article")].find(item => item.getBoundingClientRect().bottom > line + 40);
    const at = Math.round(first.getBoundingClientRect().top - line);
    if (at <= 40) return {id: first.dataset.id, at};
  }
}"""
_AT: Final = """(box, id) => Math.round(box.querySelector(`article[data-id="${id}"]`).getBoundingClientRect().top
  - box.getBoundingClientRect().top)"""


_IS_EMPTY_NEAR: Final = """() => {
  window.isEmptyNear = (box, margin) => {  // whether a chunk in sight, or this near to it, is not rendered yet
    const {top, bottom} = box.getBoundingClientRect();
    return [...box.querySelectorAll("[style*=height]:empty")].map(chunk => chunk.getBoundingClientRect())
      .some(chunk => chunk.bottom > top - margin && chunk.top < bottom + margin);
  };
}"""


def conversation(page: Page) -> Locator:
    return page.get_by_role("region", name="Conversation")


def up_to_the_first(page: Page) -> None:
    """Scroll up until the first message of the session is at the top."""
    page.evaluate("""async () => {
        const box = document.querySelector("section[aria-label=Conversation]");
        const there = () => box.scrollTop <= 1 && box.querySelector("article")?.dataset.id === "msg_000001";
        for (let turn = 0; turn < 5000 && !there(); turn++) {
            box.scrollTop = 0;
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        }
    }""")


@pytest.mark.parametrize("count", [250, pytest.param(2000, marks=pytest.mark.soak)])
def test_a_session_of_many_messages(start: Start, tmp_path: Path, open_page: Open, count: int) -> None:
    """The newest page comes first; all can be scrolled through while the page stays small; it streams smoothly."""
    seed.seed_messages(tmp_path / "data", count)
    server = start()
    page = open_page(f"{server.url}/c/{seed.LONG}")
    expect(answers(page).last).to_contain_text(f"Message number {count}.")
    expect(answers(page).last).to_be_in_viewport()
    record_most(page, "article")
    up_to_the_first(page)
    expect(page.get_by_role("article").first).to_contain_text("Message number 1.")
    seen = _read_downwards(page)
    assert seen == list(range(1, count + 1))
    assert page.evaluate("window.most") <= MAX_RENDERED
    assert page.evaluate("document.querySelectorAll('*').length") < 6000

    conversation(page).evaluate("box => { box.scrollTop = box.scrollHeight / 2 }")
    button(page, "Scroll to bottom").click()
    expect(answers(page).last).to_contain_text(f"Message number {count}.")
    expect(answers(page).last).to_be_in_viewport()
    page.evaluate("""() => {
        window.long = [];
        new PerformanceObserver(list => window.long.push(...list.getEntries().map(e => Math.round(e.duration))))
            .observe({type: "longtask"});
    }""")
    send(page, [{"tokens": 400, "rate": 200}, {"say": "the end"}], shows="the end")
    wait_idle(page)
    tasks = page.evaluate("window.long")
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps({"tokens_per_second": 200, "messages": count, "tasks_over_50_ms": tasks}) + "\n")
    expect(answers(page).last).to_be_in_viewport(ratio=0.01)


def _read_downwards(page: Page) -> list[int]:
    """Scroll down and return the numbers of all messages in the order in which they appear."""
    page.evaluate(_IS_EMPTY_NEAR)
    found: list[int] = page.evaluate("""async () => {
        const box = document.querySelector("section[aria-label=Conversation]");
        const seen = [], had = new Set();
        const painted = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        for (;;) {
            while (window.isEmptyNear(box, box.clientHeight)) await painted();
            for (const item of box.querySelectorAll("article")) {
                if (had.has(item.dataset.id)) continue;
                had.add(item.dataset.id);
                seen.push(Number(item.innerText.match(/number (\\d+)/)[1]));
            }
            if (box.scrollTop + box.clientHeight >= box.scrollHeight - 2) return seen;
            box.scrollTop += box.clientHeight * 2;
            await painted();
        }
    }""")
    return found


def test_what_is_read_stays_in_place(start: Start, tmp_path: Path, open_page: Open) -> None:
    """Older pages loaded above, and an answer that streams below, do not move what is being read."""
    seed.seed_messages(tmp_path / "data", 300)
    server = start()
    page = open_page(f"{server.url}/c/{seed.LONG}")
    expect(answers(page).last).to_contain_text("Message number 300.")
    box = conversation(page)
    with page.expect_response("**/messages?cursor=*"):
        box.evaluate("box => { box.scrollTop = 500 }")
        before = box.evaluate(_TOP)
    page.wait_for_function("() => document.querySelector('section[aria-label=Conversation]').scrollTop > 2000")
    assert abs(box.evaluate(_AT, before["id"]) - before["at"]) <= 1
    send(
        page,
        [{"tokens": 5, "rate": 200}, {"meet": "more"}, {"tokens": 300, "rate": 400}, {"say": "the end"}],
        shows="t4",
    )
    box.evaluate("box => { box.scrollTop -= 1500 }")
    before = box.evaluate(_TOP)
    server.order(open="more")
    button(page, "Scroll to bottom").wait_for()
    expect(button(page, "Stop")).to_have_count(0)
    assert abs(box.evaluate(_AT, before["id"]) - before["at"]) <= 1
    button(page, "Scroll to bottom").click()
    expect(answers(page).last).to_contain_text("the end")
    expect(answers(page).last).to_be_in_viewport()


def test_an_open_editor_survives_scrolling(start: Start, tmp_path: Path, open_page: Open) -> None:
    """U5: nothing typed is lost: a message being edited stays in the page however far one scrolls."""
    seed.seed_messages(tmp_path / "data", 300)
    server = start()
    page = open_page(f"{server.url}/c/{seed.LONG}")
    mine = page.get_by_role("article", name="You").last
    mine.hover()
    button(mine, "Edit").click()
    page.get_by_role("textbox", name="Edit message").fill("half a thought")
    box = conversation(page)
    box.focus()
    up_to_the_first(page)
    expect(box.get_by_text("Message number 1.", exact=True)).to_be_visible()
    expect(page.get_by_role("textbox", name="Edit message")).to_have_value("half a thought")


@pytest.mark.parametrize("count", [400, pytest.param(1500, marks=pytest.mark.soak)])
def test_many_sessions(start: Start, tmp_path: Path, open_page: Open, count: int) -> None:
    """The list of sessions is paged and only what is near its window is in the page."""
    seed.seed_sessions(tmp_path / "data", count)
    server = start()
    page = open_page(server.url)
    nav = page.get_by_role("navigation", name="Chats")
    expect(nav.get_by_role("link", name=f"Session {count}", exact=True)).to_be_visible()
    page.evaluate(_IS_EMPTY_NEAR)
    found = page.evaluate(
        """async (count) => {
        const list = document.querySelector("nav[aria-label=Chats] [data-scroll-container]");
        const had = new Set();
        let most = 0, still = 0;
        while (still < 2000) {
            const before = had.size;
            const rows = list.querySelectorAll("li a");
            most = Math.max(most, rows.length);
            for (const row of rows) had.add(row.innerText);
            if (had.size >= count) break;
            still = had.size > before ? 0 : still + 1;
            if (!window.isEmptyNear(list, 0)) list.scrollTop += list.clientHeight;
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        }
        return {had: had.size, most};
    }""",
        count,
    )
    assert found["had"] == count
    assert found["most"] <= 250
    nav.locator("[data-scroll-container]").evaluate("list => { list.scrollTop = list.scrollHeight }")
    nav.get_by_role("link", name="Session 1", exact=True).click()
    page.wait_for_url("**/c/ses_000001")
