"""Compare: approvals, blind tests, votes, and what is left after a reload."""

import json
import re
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.chat_page import answers, button
from tests.browser.conftest import Open
from tests.http.client import Served


def compare(page: Page, script: Any) -> Locator:
    """The panes, after the prompt was sent to two models."""
    page.get_by_role("textbox", name="Prompt").fill(json.dumps(script))
    button(page, "Compare").click()
    panes = page.get_by_role("region", name=re.compile(r"^\d: "))
    expect(panes).to_have_count(2)
    return panes


def wait_finished(panes: Locator) -> None:
    for n in range(2):
        expect(panes.nth(n)).to_have_attribute("aria-busy", "false")


def test_a_tool_is_approved_in_its_pane(server: Served, open_page: Open) -> None:
    """Each pane asks for its own tool, and goes on with the decision."""
    page = open_page(f"{server.url}/compare")
    call = {"call": "c1", "name": "shell", "args": {"command": "ls"}, "asks": True, "result": "files"}
    panes = compare(page, [call, {"say": "Done."}])
    button(panes.nth(0), "Allow once").click()
    expect(panes.nth(0)).to_contain_text("Done.")
    button(panes.nth(1), "Deny").click()
    wait_finished(panes)
    expect(page.get_by_role("group", name="Approval")).to_have_count(0)


def test_a_blind_test_stays_blind_until_the_vote(server: Served, open_page: Open) -> None:
    """Names are hidden until an answer is picked, whatever happens to the checkbox and after a reload."""
    page = open_page(f"{server.url}/compare")
    page.get_by_role("checkbox", name="Blind test").check()
    panes = compare(page, [{"say": "An answer."}])
    wait_finished(panes)
    page.get_by_role("checkbox", name="Blind test").uncheck()
    expect(panes.nth(0).get_by_role("heading")).to_have_text("Answer A")
    expect(panes.nth(0)).not_to_contain_text("First token")  # the speed would tell the name
    page.get_by_role("textbox", name="Prompt").fill("The next one")
    page.get_by_role("combobox", name="Model 2").select_option(label="Default model")
    page.reload()
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value("The next one")
    expect(page.get_by_role("combobox", name="Model 2")).to_have_value("")
    expect(panes.nth(1)).to_contain_text("An answer.")
    expect(panes.nth(1).get_by_role("heading")).to_have_text("Answer B")
    button(panes.nth(1), "Pick as best").click()
    expect(panes.nth(1)).to_contain_text("Your pick")
    expect(panes.nth(1).get_by_role("heading")).not_to_have_text("Answer B")
    page.reload()
    expect(panes.nth(1)).to_contain_text("Your pick")
    votes = [item["settings"]["comparison"].get("best") for item in server.get("/api/sessions?source=compare")["items"]]
    assert sorted(votes, key=bool) == [None, True]


def test_comparisons_are_kept_apart_from_chats(server: Served, open_page: Open) -> None:
    """A comparison is in its own list, to be opened and deleted; a chat that is continued moves to the chats."""
    page = open_page(f"{server.url}/compare")
    panes = compare(page, [{"say": "An answer."}])
    wait_finished(panes)
    button(page, "New comparison").click()
    expect(panes).to_have_count(0)
    recent = page.get_by_role("list", name="Recent comparisons").get_by_role("listitem")
    expect(recent).to_have_count(1)
    expect(page.get_by_role("navigation", name="Chats").get_by_role("listitem")).to_have_count(0)
    assert server.get("/api/sessions?archived=true")["items"] == []
    expect(recent).to_contain_text("An answer.")  # the prompt, which is its title
    recent.get_by_role("button", name="Open").click()
    expect(panes.nth(1)).to_contain_text("An answer.")
    button(panes.nth(0), "Open in chat").click()
    expect(answers(page)).to_contain_text("An answer.")
    assert len(server.get("/api/sessions")["items"]) == 1
    page.goto(f"{server.url}/compare")
    expect(recent).to_contain_text("1 continued as a chat")
    recent.get_by_role("button", name="Open").click()
    expect(panes).to_have_count(2)  # it is shown whole
    page.goto(f"{server.url}/compare")
    recent.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(recent).to_have_count(0)
    assert server.get("/api/sessions?source=compare")["items"] == []
    assert len(server.get("/api/sessions")["items"]) == 1


def test_cancel_keeps_a_comparison(server: Served, open_page: Open) -> None:
    """A comparison is deleted only if the question is confirmed."""
    page = open_page(f"{server.url}/compare")
    wait_finished(compare(page, [{"say": "An answer."}]))
    button(page, "New comparison").click()
    recent = page.get_by_role("list", name="Recent comparisons").get_by_role("listitem")
    deleted: list[str] = []
    page.on("request", lambda request: deleted.append(request.url) if request.method == "DELETE" else None)
    recent.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    recent.get_by_role("button", name="Open").click()
    expect(page.get_by_role("region", name="1: ")).to_contain_text("An answer.")
    assert deleted == []
    assert len(server.get("/api/sessions?source=compare")["items"]) == 2
