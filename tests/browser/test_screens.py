"""Every screen: names for assistive tools, light and dark, a phone, hostile content, long sessions, compare."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Open
from tests.browser.see import GUARD_MS, answers, axe, button, finished, message_box, same, send, session_of
from tests.http.client import Served


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(server: Served, browser: Browser, scheme: Any) -> None:
    """No accessibility violation on any screen, in light and dark."""
    everything = [
        {"think": "Hm."},
        {"call": "c1", "name": "read", "args": {"path": "a"}, "output": ["x"]},
        {
            "say": "**Text** with `code` and [a link](https://example.org).\n\n"
            "```python\nx = 1  # one\n```\n\n|a|b|\n|-|-|\n|1|2|"
        },
        {"usage": [10, 20]},
    ]
    sid = server.session(title="Everything")
    run = server.send(sid, everything)["run"]["id"]
    server.events(run)
    server.events(server.send(sid, [{"say": "Half"}, {"fail": ["x", "It failed."]}])["run"]["id"])
    asks = server.session(title="Asks")
    server.send(asks, [{"call": "c1", "name": "shell", "args": {"command": "ls"}, "asks": True}])
    server.send(asks, "queued")
    context = browser.new_context(color_scheme=scheme)
    context.set_default_timeout(GUARD_MS)
    page = context.new_page()
    for path, landmark in (
        ("/", "What shall we work on?"),
        (f"/c/{sid}", "It failed."),
        (f"/c/{asks}", "asks for your permission"),
        (f"/runs/{run}", "Event 8 of 8"),
        ("/compare", "One prompt"),
        ("/activity", "Ended"),
        ("/settings", "Storage answers"),
        ("/login", "Password"),
    ):
        page.goto(server.url + path)
        if landmark == "One prompt":
            expect(page.get_by_placeholder(landmark)).to_be_visible()
        else:
            expect(page.get_by_text(landmark).first).to_be_visible()
        assert axe(page) == [], path
    page.goto(server.url)
    expect(message_box(page)).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    assert axe(page) == []
    context.close()


def test_a_phone(server: Served, open_page: Open) -> None:
    """At 360 px nothing is wider than the screen, and the sessions are a drawer."""
    page = open_page(server.url, width=360, height=740)
    nav = page.get_by_role("navigation", name="Sessions")
    expect(nav).to_have_count(0)  # shut, and so for nobody there
    send(page, "in a few words")
    expect(answers(page)).to_contain_text("in a few words")
    finished(page)
    same(page, server, session_of(page))
    wide = f"```\n{'wide ' * 60}\n```\n\n|a|b|c|d|\n|-|-|-|-|\n|{'x' * 80}|2|3|4|"
    send(page, [{"say": f"A {'very' * 60} long word and\n\n{wide}"}])
    finished(page)
    sid = session_of(page)
    expect(answers(page).last).to_contain_text("long word")
    for path in (f"/c/{sid}", "/", "/compare", "/activity", "/settings", f"/runs/{server.answer(sid)['run_id']}"):
        page.goto(server.url + path)
        button(page, "Show sessions").click()
        expect(nav).to_be_visible()
        button(nav, "Close sessions").click()
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
    """Untrusted output runs nothing, loads nothing from elsewhere and leaves the page nowhere."""
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
    finished(page)
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
        button(page, "Add a model").click()
    page.get_by_role("textbox", name="Prompt").fill(json.dumps([{"say": "Pane. "}, {"meet": "go"}, {"say": "Done."}]))
    button(page, "Compare").click()
    panes = page.locator("section.pane")
    expect(panes).to_have_count(6)
    for n in range(6):
        expect(panes.nth(n)).to_contain_text("Pane.")
    assert server.order(upstreams=True) == 8
    button(panes.nth(2), "Stop").click()
    expect(panes.nth(2)).to_contain_text("Stopped.")
    assert server.order(upstreams=True) == 7
    server.order(open="go")
    for n in (0, 1, 3, 4, 5):
        expect(panes.nth(n)).to_contain_text("Done.")
    assert "Done." not in panes.nth(2).inner_text()
    button(panes.nth(0), "Continue with this one").click()
    expect(answers(page)).to_contain_text("Pane. Done.")
    same(page, server, session_of(page))


def test_leaving_compare_stops_it(server: Served, open_page: Open) -> None:
    """L3: the panes are their connection; going elsewhere in the app ends them."""
    page = open_page(f"{server.url}/compare")
    page.get_by_role("textbox", name="Prompt").fill(json.dumps([{"say": "Pane. "}, {"hang": True}]))
    button(page, "Compare").click()
    expect(page.locator("section.pane").last).to_contain_text("Pane.")
    page.get_by_role("link", name="Activity").click()
    ended = page.get_by_role("region", name="Ended")
    expect(ended.get_by_text("cancelled")).to_have_count(2)


def test_the_flight_recorder_scrubs(server: Served, open_page: Open) -> None:
    """Any instant of a run can be shown, and the journal exported as it was streamed."""
    sid = server.session()
    run = server.send(sid, [{"say": "one "}, {"step": 1}, {"say": "two "}, {"step": 2}, {"say": "three"}])["run"]["id"]
    events = server.events(run)
    page = open_page(f"{server.url}/runs/{run}")
    shown = page.get_by_role("region", name="The message at this point")
    expect(shown).to_contain_text("one two three")
    page.get_by_role("group", name="Events").get_by_role("button", name="two").click()
    expect(shown).to_have_text("one two")
    page.get_by_role("slider", name="Event").focus()
    page.keyboard.press("Home")
    expect(shown).to_have_text("Nothing yet.")
    with page.expect_download() as saved:
        button(page, "Export").click()
    lines = [json.loads(line) for line in saved.value.path().read_text().splitlines()]
    assert lines == [{"seq": frame.seq, "type": frame.event, "data": frame.data} for frame in events]


def test_the_flight_recorder_shows_times(server: Served, open_page: Open) -> None:
    """First token, tools and silences are told from the events' own times, and the line can be scrubbed and played."""
    sid = server.session()
    script = [{"say": "one "}, {"call": "c1", "name": "slow", "takes": 0.3}, {"say": "two"}]
    run = server.send(sid, script)["run"]["id"]
    events = server.events(run)
    at = {frame.event: frame.data["at"] for frame in events if "at" in frame.data}
    page = open_page(f"{server.url}/runs/{run}")
    line = page.get_by_role("region", name="Time line")
    tool = line.get_by_title(re.compile("^slow:"))
    expect(tool).to_have_count(1)
    box, whole = tool.bounding_box(), line.locator(".track-lanes").bounding_box()
    assert box is not None
    assert whole is not None
    total = at["run.complete"] - at["run.started"]
    assert abs(box["width"] / whole["width"] - (at["tool.finished"] - at["tool.started"]) / total) < 0.02
    page.mouse.click(whole["x"] + (box["x"] - whole["x"]) + box["width"] / 2, whole["y"] + 5)
    shown = page.get_by_role("region", name="The message at this point")
    expect(shown).to_contain_text("one")
    expect(shown).not_to_contain_text("two")
    expect(shown.get_by_role("region", name="Tool slow")).to_contain_text("running")
    button(line, "Play").click()
    expect(shown).to_contain_text("two")
    expect(button(line, "Play")).to_be_visible()


def test_activity_shows_and_stops_runs(server: Served, open_page: Open) -> None:
    """All runs are there, live; one that is running can be stopped."""
    page = open_page(f"{server.url}/activity")
    sid = server.session(title="At work")
    run = server.send(sid, [{"hang": True}])["run"]["id"]
    now = page.get_by_role("region", name="Now")
    expect(now).to_contain_text("At work")
    button(now, "Stop").click()
    expect(now).to_contain_text("Nothing is running.")
    assert server.run(run)["status"] == "cancelled"


def test_the_palette_and_the_search(server: Served, open_page: Open) -> None:
    """Ctrl-K finds chats and commands; the search marks what it found in messages."""
    sid = server.session(title="Tide tables")
    server.events(server.send(sid, "the ebb comes at noon")["run"]["id"])
    page = open_page(server.url)
    expect(page.get_by_role("link", name="Tide tables")).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    page.keyboard.type("tide")
    page.keyboard.press("Enter")
    expect(answers(page)).to_contain_text("the ebb comes at noon")
    page.get_by_role("searchbox", name="Search chats").fill("ebb")
    expect(page.get_by_role("region", name="Found").locator("mark")).to_have_text("ebb")
    message_box(page).fill("/und")
    message_box(page).press("Enter")
    expect(page.get_by_role("article")).to_have_count(0)


def test_a_diagram_is_drawn_in_its_own_frame(server: Served, open_page: Open, complaints: list[str]) -> None:
    """Mermaid draws, without a breach of the policy; what it cannot draw stays as text; a hostile one runs nothing."""
    page = open_page(server.url)
    send(page, [{"say": "```mermaid\ngraph TD\n  Sea --> Harbour\n```\n\n```mermaid\nno diagram\n```"}])
    finished(page)
    frames = page.locator("iframe[title=Diagram]")
    expect(frames.nth(0).content_frame.get_by_text("Harbour")).to_be_visible()
    expect(answers(page).get_by_text("no diagram")).to_be_visible()
    button(page.locator("figure").nth(0), "Source").click()
    expect(answers(page).get_by_text("Sea --> Harbour")).to_be_visible()
    assert complaints == []
    bad = 'graph TD\n  A["<img src=x onerror=parent.hacked=1>"] --> B\n  click A "javascript:parent.hacked=2"'
    send(page, [{"say": f"```mermaid\n{bad}\n```"}])
    finished(page)
    expect(frames.nth(2).content_frame.locator("svg").first).to_be_visible()
    assert page.evaluate("window.hacked") is None
    complaints[:] = [text for text in complaints if "The action has been blocked" not in text]  # the frame's own policy
