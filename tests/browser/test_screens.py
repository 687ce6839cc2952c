"""Every screen: accessibility, light and dark, a phone, hostile content, compare, recorder, activity, search."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import (
    answers,
    axe_violations,
    button,
    check_transcript,
    message_box,
    send,
    session_of,
    wait_idle,
)
from tests.browser.conftest import ConsoleErrors, Open
from tests.http.client import Served


def test_screens_have_no_accessibility_violations(
    server: Served, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """No accessibility violation on any screen, in light and dark."""
    markdown = (
        "**Text** with `code` and [a link](https://example.org).\n\n```python\nx = 1  # one\n```\n\n|a|b|\n|-|-|\n|1|2|"
    )
    call = {"call": "c1", "name": "read", "args": {"path": "a"}, "output": ["x"]}
    sid = server.session(title="Everything")
    run = server.send(sid, [{"think": "Hm."}, call, {"say": markdown}, {"usage": [10, 20]}])["run"]["id"]
    server.events(run)
    server.events(server.send(sid, [{"say": "Half"}, {"fail": ["x", "It failed."]}])["run"]["id"])
    approval = server.session(title="Approval")
    server.send(approval, [{"call": "c1", "name": "shell", "args": {"command": "ls"}, "asks": True}])
    server.send(approval, "queued")
    page = open_page(server.url)
    for path, landmark in (
        ("/", "What can I help with?"),
        (f"/c/{sid}", "It failed."),
        (f"/c/{approval}", "Allow shell to run?"),
        (f"/runs/{run}", "Event 8 of 8"),
        ("/compare", "Blind test"),
        ("/activity", "Finished"),
        ("/settings", "Server is healthy"),
        ("/login", "Password"),
        ("/nonsense/page", "Page not found"),
        ("/runs/run_none", "Run not found"),
    ):
        page.goto(server.url + path)
        expect(page.get_by_text(landmark).first).to_be_visible()
        assert axe_violations(page) == [], path
    console_errors[:] = [text for text in console_errors if "404" not in text]
    page.goto(server.url)
    expect(message_box(page)).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search chats and commands")).to_be_focused()
    assert axe_violations(page) == []


def test_a_phone(server: Served, open_page: Open) -> None:
    """At 360 px nothing is wider than the screen, and the chats are in a drawer."""
    page = open_page(server.url, width=360, height=740)
    nav = page.get_by_role("navigation", name="Chats")
    expect(nav).to_have_count(0)  # closed
    send(page, "in a few words", shows="in a few words")
    check_transcript(page, server)
    wide = f"```\n{'wide ' * 60}\n```\n\n|a|b|c|d|\n|-|-|-|-|\n|{'x' * 80}|2|3|4|"
    send(page, [{"say": f"A {'very' * 60} long word and\n\n{wide}"}])
    wait_idle(page)
    sid = session_of(page)
    expect(answers(page).last).to_contain_text("long word")
    for path in (f"/c/{sid}", "/", "/compare", "/activity", "/settings", f"/runs/{server.answer(sid)['run_id']}"):
        page.goto(server.url + path)
        button(page, "Open sidebar").click()
        expect(nav).to_be_visible()
        button(nav, "Close sidebar").click()
        expect(nav).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


HOSTILE = """<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">
<iframe src="https://evil.example/"></iframe><style>body { display: none }</style>

![tracker](https://evil.example/pixel.png) ![local](/api/sessions) [run](javascript:window.hacked=3)
[data](data:text/html,<script>window.hacked=4</script>) <https://evil.example/auto> [ok](https://good.example/)

<a href="https://evil.example" onclick="window.hacked=5">raw</a> <meta http-equiv="refresh" content="0;url=https://evil.example">

$\\href{javascript:window.hacked=6}{x}$ $\\includegraphics{https://evil.example/y.png}$

```html
<script>window.hacked = 7</script>
```
"""


def test_hostile_markdown(server: Served, open_page: Open) -> None:
    """Untrusted output runs nothing, loads nothing from other hosts and navigates nowhere."""
    page = open_page(server.url)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    send(
        page,
        [
            {"think": HOSTILE},
            {"say": HOSTILE},
            {"call": "c", "name": HOSTILE[:60], "args": {"a": HOSTILE}, "result": HOSTILE},
        ],
    )
    wait_idle(page)
    expect(answers(page)).to_contain_text("raw")
    page.wait_for_function("() => document.querySelector('.katex')")
    assert page.evaluate("window.hacked") is None
    assert [url for url in asked if not url.startswith(server.url)] == []
    links = (
        answers(page).get_by_role("link").evaluate_all("items => items.map(item => [item.href, item.rel, item.target])")
    )
    assert links
    for href, rel, target in links:
        assert href.startswith(("https://", server.url))
        if not href.startswith(server.url):
            assert "noopener" in rel
            assert target == "_blank"
    assert page.locator("iframe, object, embed, article img").count() == 0
    assert page.url.startswith(server.url)


def test_compare_six_panes_beside_two_tabs(server: Served, open_page: Open) -> None:
    """U2, U6: with six panes and two further tabs streaming, Stop on one pane reaches the server and stops that one."""
    for n in range(2):
        tab = open_page(server.url)
        send(tab, [{"say": f"Tab {n}. "}, {"hang": True}])
        expect(answers(tab)).to_contain_text(f"Tab {n}.")
    page = open_page(f"{server.url}/compare")
    for _ in range(4):
        button(page, "Add model").click()
    page.get_by_role("textbox", name="Prompt").fill(json.dumps([{"say": "Pane. "}, {"meet": "go"}, {"say": "Done."}]))
    button(page, "Compare").click()
    panes = page.get_by_role("region", name=re.compile(r"^\d: "))
    expect(panes).to_have_count(6)
    for n in range(6):
        expect(panes.nth(n)).to_contain_text("Pane.")
    assert server.order(upstreams=True) == 8
    button(panes.nth(2), "Stop").click()
    expect(panes.nth(2)).to_contain_text("Stopped")
    assert server.order(upstreams=True) == 7
    server.order(open="go")
    for n in (0, 1, 3, 4, 5):
        expect(panes.nth(n)).to_contain_text("Done.")
    assert "Done." not in panes.nth(2).inner_text()
    button(panes.nth(0), "Open in chat").click()
    expect(answers(page)).to_contain_text("Pane. Done.")
    check_transcript(page, server)


def test_leaving_compare_stops_it(server: Served, open_page: Open) -> None:
    """L3: the runs are attached to the page; leaving it ends them."""
    page = open_page(f"{server.url}/compare")
    page.get_by_role("textbox", name="Prompt").fill(json.dumps([{"say": "Pane. "}, {"hang": True}]))
    button(page, "Compare").click()
    expect(page.get_by_role("region", name="2: ")).to_contain_text("Pane.")
    page.get_by_role("link", name="Activity").click()
    ended = page.get_by_role("region", name="Finished")
    expect(ended.get_by_text("Stopped")).to_have_count(2)


def test_the_flight_recorder(server: Served, open_page: Open) -> None:
    """Any point of a run can be shown, by event and by time; the journal is exported as it was streamed."""
    sid = server.session()
    script = [{"say": "one "}, {"call": "c1", "name": "slow", "takes": 0.3}, {"say": "two"}]
    run = server.send(sid, script)["run"]["id"]
    events = server.events(run)
    at = {frame.event: frame.data["at"] for frame in events if "at" in frame.data}
    page = open_page(f"{server.url}/runs/{run}")
    shown = page.get_by_role("region", name="Message at this point")
    expect(shown).to_contain_text("two")
    page.get_by_role("group", name="Events").get_by_role("button", name="one").click()
    expect(shown).to_have_text("one")
    page.get_by_role("slider", name="Event").focus()
    page.keyboard.press("Home")
    expect(shown).to_have_text("No output yet")
    with page.expect_download() as saved:
        button(page, "Export").click()
    lines = [json.loads(line) for line in saved.value.path().read_text().splitlines()]
    assert lines == [{"seq": frame.seq, "type": frame.event, "data": frame.data} for frame in events]

    timeline = page.get_by_role("region", name="Timeline")
    tool = timeline.get_by_title(re.compile("^slow:"))
    box, whole = tool.bounding_box(), timeline.locator("[data-lanes]").bounding_box()
    assert box is not None
    assert whole is not None
    total = at["run.complete"] - at["run.started"]
    assert abs(box["width"] / whole["width"] - (at["tool.finished"] - at["tool.started"]) / total) < 0.02
    page.mouse.click(box["x"] + box["width"] / 2, whole["y"] + 5)
    expect(shown).to_contain_text("one")
    expect(shown).not_to_contain_text("two")
    expect(shown.get_by_role("region", name="Tool slow")).to_contain_text("Running")
    button(timeline, "Play").click()
    expect(shown).to_contain_text("two")
    expect(button(timeline, "Play")).to_be_visible()


def test_activity_shows_and_stops_runs(server: Served, open_page: Open) -> None:
    """All runs are listed live; a running one can be stopped."""
    page = open_page(f"{server.url}/activity")
    sid = server.session(title="In the works")
    run = server.send(sid, [{"hang": True}])["run"]["id"]
    now = page.get_by_role("region", name="In progress")
    expect(now).to_contain_text("In the works")
    button(now, "Stop").click()
    expect(now).to_contain_text("No runs in progress")
    assert server.run(run)["status"] == "cancelled"


def test_the_palette_and_the_search(server: Served, open_page: Open) -> None:
    """Ctrl-K finds chats and commands; the search highlights its matches in messages."""
    sid = server.session(title="Tide tables")
    server.events(server.send(sid, "the ebb comes at noon")["run"]["id"])
    page = open_page(server.url)
    expect(page.get_by_role("link", name="Tide tables")).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search chats and commands")).to_be_focused()
    page.keyboard.type("tide")
    page.keyboard.press("Enter")
    expect(answers(page)).to_contain_text("the ebb comes at noon")
    page.get_by_role("searchbox", name="Search chats").fill("ebb")
    expect(page.get_by_role("region", name="Search results").locator("mark")).to_have_text("ebb")
    message_box(page).fill("/und")
    message_box(page).press("Enter")
    expect(page.get_by_role("article")).to_have_count(0)


@pytest.mark.soak
def test_a_diagram_is_rendered_in_an_iframe(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """Mermaid renders within the content security policy; invalid source stays text; a hostile diagram runs nothing."""
    page = open_page(server.url)
    send(page, [{"say": "```mermaid\ngraph TD\n  Sea --> Harbour\n```\n\n```mermaid\nno diagram\n```"}])
    wait_idle(page)
    frames = page.locator("iframe[title=Diagram]")
    expect(frames.nth(0).content_frame.get_by_text("Harbour")).to_be_visible()
    expect(answers(page).get_by_text("no diagram")).to_be_visible()
    button(page.locator("figure").nth(0), "Show source").click()
    expect(answers(page).get_by_text("Sea --> Harbour")).to_be_visible()
    assert console_errors == []
    console_errors.expect("The action has been blocked")  # by the frame's own policy
    bad = 'graph TD\n  A["<img src=x onerror=parent.hacked=1>"] --> B\n  click A "javascript:parent.hacked=2"'
    send(page, [{"say": f"```mermaid\n{bad}\n```"}])
    wait_idle(page)
    expect(frames.nth(2).content_frame.locator("svg").first).to_be_visible()
    assert page.evaluate("window.hacked") is None
