"""What the page says about the real tools and memory: how commands are confined, which facts wait to be confirmed, and
what an answer has lost."""

import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import answers, axe_violations, button, notice, send, session_of, wait_idle
from tests.browser.conftest import ConsoleErrors, Open, Start
from tests.chat.conftest import chat_forker, settings, up
from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import starting
from tests.upstream import Hang, PauseAt, says

__all__ = ["chat_forker", "up"]


@pytest.fixture
def start(tmp_path: Path, chat_forker: ServerForker, up: ScriptedModelServer) -> Iterator[Start]:
    """Servers with the real agents and tools, whose first screen is done."""

    def make(**changes: Any) -> Served:
        return Served(chat_forker, tmp_path / "data", **settings(up, **changes))

    with starting(make) as begin:

        def begin_set_up(**changes: Any) -> Served:
            served = begin(**changes)
            served.post("/api/setup/done", expect=204)
            return served

        yield begin_set_up


@pytest.mark.parametrize(
    ("shell", "shown"),
    [
        ({}, "Sandboxed, no network"),
        ({"network": True}, "Sandboxed"),
        ({"sandbox": "off"}, "Not sandboxed: "),
    ],
    ids=["by default", "with network", "off"],
)
def test_the_settings_say_how_commands_are_confined(
    start: Start, open_page: Open, shell: dict[str, Any], shown: str
) -> None:
    """Beside the shell, and beside no other tool; if it is not confined, why."""
    server = start(more={"shell": shell})
    (status,) = [tool["sandbox"] for tool in server.get("/api/tools")["items"] if tool["name"] == "shell"]
    if not status["active"]:  # also where bubblewrap does not work
        shown = f"Not sandboxed: {status['reason']}"
        assert status["reason"]
    page = open_page(f"{server.url}/settings#tools")
    tools = page.get_by_role("list", name="Tools").get_by_role("listitem")
    expect(tools.filter(has_text="shell").filter(has_text="Run")).to_contain_text(shown)
    expect(tools.filter(has_text="andboxed")).to_have_count(1)
    if shown == "Sandboxed":
        expect(tools.filter(has_text="no network")).to_have_count(0)


def test_a_fact_is_used_after_it_was_confirmed_on_the_page(
    start: Start, open_page: Open, up: ScriptedModelServer
) -> None:
    """With `confirm`, a fact says that it is not used and has a button; models see it from then on."""
    server = start(more={"memory": {"extract": "rules", "confirm": True}})
    up.play("confirmed on the page", says("Yes."))
    model = f"{PROVIDER}/confirmed on the page"
    sid = server.session(model=model)
    server.ended(server.begin(sid, "I live in Lisbon."))
    server.post(f"/api/sessions/{sid}/memory/commit", {})
    page = open_page(f"{server.url}/settings#memory")
    facts = page.get_by_role("region", name="Memory", exact=True).get_by_role("list", name="Memories")
    fact = facts.get_by_role("listitem")
    expect(fact).to_contain_text("Not used until confirmed")
    assert axe_violations(page) == []
    server.ended(server.begin(server.session(model=model), "Where do I live?"))
    assert "Lisbon" not in str(up.asked("confirmed on the page", 2))
    fact.get_by_role("button", name="Confirm").click()
    expect(fact.get_by_role("button", name="Confirm")).to_have_count(0)
    expect(fact).not_to_contain_text("Not used until confirmed")
    server.ended(server.begin(server.session(model=model), "Where do I live?"))
    assert "Lisbon" in str(up.asked("confirmed on the page", 3))


def test_an_answer_whose_journal_was_lost_says_so(
    start: Start, open_page: Open, up: ScriptedModelServer, console_errors: ConsoleErrors
) -> None:
    """X5: the journal is moved away as the server's message advises: the answer says that its output could not be
    recovered; continued, it asks before the tool that may have run, and the question says why."""
    console_errors.expect("ERR_", "Failed to load resource")
    model, edit = "lost on the page", {"path": "a", "old": "b", "new": "bb"}
    up.play(
        model, calls(("c1", "edit_file", edit)), [PauseAt(model), Hang()], calls(("c1", "edit_file", edit)), says(".")
    )
    options: dict[str, Any] = {"more": {"tools": {"edit_file": "allow"}}}
    server = start(**options)
    sid = server.session(title="A person's", model=f"{PROVIDER}/{model}")
    file = server.data_dir / "workspaces" / sid / "a"
    file.parent.mkdir(parents=True)
    file.write_text("b")
    page = open_page(f"{server.url}/c/{sid}")
    send(page, "Do it")
    up.reached(model)
    assert file.read_text() == "bb"
    server.kill()
    for journal in server.data_dir.glob("journal.db*"):
        journal.unlink()
    server = start(**options, port=urllib.parse.urlsplit(server.url).port)
    expect(notice(page)).to_contain_text("Interrupted by a server restart: the output could not be recovered")
    expect(button(page, "Retry recovery")).to_be_visible()
    assert axe_violations(page) == []
    button(page, "Continue").click()
    approval = page.get_by_role("group", name="Approval")
    expect(approval).to_contain_text("Part of this answer was lost")
    assert file.read_text() == "bb"
    button(approval, "Deny").click()
    wait_idle(page)
    expect(answers(page)).to_contain_text(".")
    expect(notice(page)).to_have_count(0)
    assert file.read_text() == "bb"
    assert session_of(page) == sid
