"""Agent programs in the page: a real server drives the scripted program of tests/acp."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from holdfast.storage.key_file import KeyFile
from tests.acp.conftest import Program, chat_forker, open_session, play, preloaded, program, start, up
from tests.browser.chat_page import (
    answers,
    axe_violations,
    button,
    message_box,
    notice,
    send,
    session_of,
    start_chatting,
    wait_idle,
)
from tests.browser.conftest import ConsoleErrors, Open
from tests.http.conftest import Start
from tests.http.streams import until

__all__ = ["chat_forker", "preloaded", "program", "start", "up"]

OPTIONS: Final = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
OFFERS: Final = {
    "configOptions": [
        {
            "id": "mode",
            "name": "Mode",
            "category": "mode",
            "type": "select",
            "currentValue": "ask",
            "options": [
                {"value": "ask", "name": "Ask first", "description": "Asks before it changes a file."},
                {"value": "edit", "name": "Accept edits"},
            ],
        },
        {
            "id": "model",
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": "small",
            "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
        },
        {"id": "fast", "name": "Fast answers", "type": "boolean", "currentValue": False},
    ]
}
COMMANDS: Final = [
    {"name": "plan", "description": "Make a plan", "input": {"hint": "what for"}},
    {"name": "tools", "description": "List its tools"},
]


def update(name: str, **fields: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": name, **fields}}


def asks(command: str = "rm notes.txt") -> dict[str, Any]:
    call = {"toolCallId": "t1", "kind": "execute", "title": command, "rawInput": {"command": command}}
    return {"ask": call, "options": OPTIONS}


@pytest.fixture
def offering(program: Program) -> Program:
    """The program with options and commands."""
    (program.home / "offers").write_text(json.dumps(OFFERS))
    (program.home / "commands").write_text(json.dumps(COMMANDS))
    return program


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "projects" / "lighthouse"
    directory.mkdir(parents=True)
    return directory


def choose_agent(page: Page, name: str) -> None:
    page.get_by_role("button", name="Model: ").click()
    page.get_by_role("combobox", name="Search models and agents").fill(f"agents {name}")
    page.keyboard.press("Enter")
    expect(button(page, "Agent options")).to_be_visible()


def options(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Options of scripted")


def test_a_question_counts_down_and_is_allowed_later(
    start: Start, program: Program, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """X5: the question shows the time that is left; after it, the message offers to allow the call, also after a
    restart and a reload, and a double click prompts the program once."""
    console_errors.expect("net::ERR_")  # while the server is down
    served = start(section={"answer_within": 3.0})
    sid = open_session(served)
    page = open_page(f"{served.url}/c/{sid}")
    done = update("tool_call_update", toolCallId="t1", status="completed")
    send(page, play(asks(), done, {"say": "The end."}))
    question = page.get_by_role("group", name="Approval")
    expect(question.get_by_role("timer")).to_contain_text("s left to answer")
    assert axe_violations(page) == []
    expect(notice(page)).to_contain_text("nobody answered in time: execute rm notes.txt")
    wait_idle(page)
    served.kill()
    served = start(section={"answer_within": 3.0})
    page.goto(f"{served.url}/c/{sid}")
    expect(notice(page)).to_have_count(1)
    assert axe_violations(page) == []
    button(page, "Allow and continue").dblclick()
    expect(answers(page)).to_contain_text('"optionId": "yes"')
    wait_idle(page)
    expect(notice(page)).to_have_count(0)
    assert len(program.prompts) == 2
    tools = page.get_by_role("region", name="Tool execute")
    expect(tools.first).to_contain_text("Denied")
    expect(tools.last).to_contain_text("Done")
    button(tools.first, "execute rm notes.txt Denied").click()
    expect(tools.first).to_contain_text("You allowed it later.")
    expect(answers(page)).to_have_count(1)


def test_a_new_chat_chooses_where_and_how_its_agent_works(
    start: Start, offering: Program, project: Path, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """X5: by keyboard and at phone width: a directory that is not allowed is refused with the reason, the options of
    the program are loaded before its first session, what differs from its defaults is shown, survives a reload and
    reaches the program."""
    console_errors.expect("422")
    served = start(agent_directories=[str(project.parent)])
    page = open_page(served.url, width=360, height=740)
    start_chatting(page)
    choose_agent(page, "scripted")
    button(page, "Agent options").click()
    panel = options(page)
    path = panel.get_by_role("textbox", name="Working directory")
    expect(path).to_be_focused()
    page.keyboard.type("/etc")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("alert")).to_contain_text(f"Must be below {project.parent}")
    path.fill(str(project))
    page.keyboard.press("Enter")
    expect(panel.get_by_role("alert")).to_have_count(0)
    button(panel, "Load options").click()
    panel.get_by_role("combobox", name="Mode", exact=True).select_option("Accept edits")
    panel.get_by_role("checkbox", name="Fast answers").check()
    chosen = page.get_by_role("list", name="Chosen for the agent")
    expect(chosen.get_by_role("listitem")).to_have_text(["lighthouse", "Mode: Accept edits", "Fast answers: on"])
    assert axe_violations(page) == []
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    message_box(page).fill("/to")
    expect(page.get_by_role("option", name="/tools")).to_be_visible()
    message_box(page).fill("")
    page.reload()
    expect(chosen.get_by_role("listitem")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    send(page, play({"say": "Hello from here."}), shows="Hello from here.")
    wait_idle(page)
    assert offering.lines("cwd")[-1] == str(project)
    assert offering.lines("chosen") == [["mode", "edit"], ["fast", True]]
    expect(chosen.get_by_role("listitem")).to_have_count(3)
    session = served.get(f"/api/sessions/{session_of(page)}")
    assert (session["cwd"], session["agent_options"]) == (str(project), {"mode": "edit", "fast": True})
    page.goto(served.url)
    expect(page.get_by_role("button", name="Model: ")).to_be_visible()
    expect(button(page, "Agent options")).to_have_count(0)


def test_options_are_changed_and_reset_in_a_chat(
    start: Start, offering: Program, project: Path, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """X5: a recent directory is offered, a change reaches the running program at once, Reset goes back to its default,
    and a refused directory leaves the chat as it was."""
    console_errors.expect("422")
    served = start(agent_directories=[str(project.parent)])
    open_session(served, cwd=str(project))
    sid = open_session(served)
    served.turn(sid, play({"say": "one"}))
    page = open_page(f"{served.url}/c/{sid}")
    button(page, "Agent options").click()
    panel = options(page)
    panel.get_by_role("combobox", name="Model", exact=True).select_option("Large")
    until(lambda: offering.lines("chosen"), [["model", "large"]].__eq__)
    chosen = page.get_by_role("list", name="Chosen for the agent")
    expect(chosen).to_have_text("Model: Large")
    button(panel, "Reset Model").click()
    expect(chosen).to_have_count(0)
    assert offering.lines("chosen") == [["model", "large"], ["model", "small"]]
    panel.get_by_role("list", name="Recent directories").get_by_role("button").click()
    expect(chosen).to_have_text("lighthouse")
    panel.get_by_role("textbox", name="Working directory").fill(f"{project}/nowhere")
    button(panel, "Use").click()
    expect(panel.get_by_role("alert")).to_contain_text("There is no directory")
    assert served.get(f"/api/sessions/{sid}")["cwd"] == str(project)
    button(panel, "Clear").click()
    expect(chosen).to_have_count(0)
    button(panel, "Done").click()
    expect(message_box(page)).to_be_focused()


def test_commands_of_the_agent_are_in_the_slash_menu(start: Start, offering: Program, open_page: Open) -> None:
    """A command that takes text is inserted, another is sent at once; both are messages to the agent, and Holdfast's
    own compaction, which does not concern it, is not offered."""
    served = start()
    sid = open_session(served)
    served.turn(sid, play({"say": "one"}))
    page = open_page(f"{served.url}/c/{sid}")
    box = message_box(page)
    box.fill("/")
    menu = page.get_by_role("listbox", name="Commands")
    expect(menu.get_by_role("option", name="/plan")).to_contain_text("Make a plan (what for)")
    expect(menu.get_by_role("option", name="/compact")).to_have_count(0)
    box.fill("/pl")
    page.keyboard.press("Enter")
    expect(box).to_have_value("/plan ")
    (offering.home / "next").write_text(play({"say": "A plan."}))
    page.keyboard.type("a light")
    page.keyboard.press("Enter")
    expect(answers(page).last).to_contain_text("A plan.")
    wait_idle(page)
    (offering.home / "next").write_text(play({"say": "My tools."}))
    box.fill("/too")
    page.keyboard.press("Enter")
    expect(answers(page).last).to_contain_text("My tools.")
    assert [prompt["text"] for prompt in offering.prompts][1:] == ["/plan a light", "/tools"]


def test_agents_are_next_to_models_in_the_picker(
    start: Start, program: Program, open_page: Open, tmp_path: Path
) -> None:
    """Programs that are not installed are in the settings only; a chat with an agent names no model of ours, and goes
    back to one."""
    served = start(environment={"PATH": str(tmp_path)})
    page = open_page(served.url)
    start_chatting(page)
    page.get_by_role("button", name="Model: ").click()
    expect(page.get_by_role("option", name="default")).to_be_visible()
    expect(page.get_by_role("option", name="Assistant (with tools)")).to_contain_text("Uses tools and memory")
    expect(page.get_by_role("option", name="Model only")).to_be_visible()
    expect(page.get_by_role("option", name="hermes")).to_have_count(0)
    expect(page.get_by_text("✓")).to_have_count(1)
    assert axe_violations(page) == []
    page.get_by_role("option", name="Manage agents…").click()
    listed = page.get_by_role("list", name="Agents").get_by_role("listitem")
    expect(listed.filter(has_text="Model only")).to_contain_text("No tools")  # the same name as in the picker
    hermes = listed.filter(has_text="hermes")
    expect(hermes).to_contain_text("hermes was not found on the PATH. Install it with")
    button(page, "New chat").click()
    choose_agent(page, "scripted")
    send(page, play({"say": "Mine."}), shows="Mine.")
    wait_idle(page)
    sid = session_of(page)
    assert (served.answer(sid)["model"], served.get(f"/api/sessions/{sid}")["agent"]) == (None, "scripted")
    page.get_by_role("button", name="Model: ").click()
    page.get_by_role("option", name="default").click()
    expect(button(page, "Agent options")).to_have_count(0)
    assert served.get(f"/api/sessions/{sid}")["agent"] == "chat"


def test_what_an_agent_reports_is_shown(start: Start, program: Program, open_page: Open) -> None:
    """X5: terminals, several edits, locations, usage with its cost, the context, and the title, live and after a
    reload."""
    served = start()
    sid = served.session(agent="scripted")
    page = open_page(f"{served.url}/c/{sid}")
    diffs = [{"type": "diff", "path": f"/w/{name}.py", "oldText": "old", "newText": f"new {name}"} for name in "ab"]
    actions = (
        {"call": "create_terminal", "params": {"command": "echo compiled"}},
        update("tool_call", toolCallId="t1", title="Build", kind="execute"),
        update("tool_call_update", toolCallId="t1", content=[{"type": "terminal", "terminalId": "term_1"}]),
        {"call": "wait_for_terminal_exit", "params": {"terminal_id": "term_1"}},
        update("tool_call_update", toolCallId="t1", status="completed"),
        update("tool_call", toolCallId="t2", title="Rename", kind="edit", content=diffs),
        update("tool_call_update", toolCallId="t2", locations=[{"path": "/w/a.py", "line": 12}], status="completed"),
        update("usage_update", used=50_000, size=200_000, cost={"amount": 0.25, "currency": "USD"}),
        update("session_info_update", title="Build the lighthouse"),
        {"usage": [1000, 200]},
        {"say": "Done."},
    )
    send(page, play(*actions), shows="Done.")
    wait_idle(page)
    for _ in range(2):
        build, edit = page.get_by_role("region", name="Tool execute"), page.get_by_role("region", name="Tool edit")
        build.get_by_role("button").click()
        expect(build).to_contain_text("compiled")
        edit.get_by_role("button").click()
        expect(edit).to_contain_text("/w/b.py")
        expect(edit).to_contain_text("+ new a")
        expect(edit.get_by_role("list", name="Files")).to_have_text("/w/a.py:12")
        expect(page.get_by_role("meter", name="Context used: about 50,000 of 200,000 tokens")).to_be_visible()
        expect(answers(page)).to_contain_text("200 tokens")
        expect(answers(page)).to_contain_text("$0.25")
        expect(page.get_by_role("heading", name="Build the lighthouse")).to_be_visible()
        page.reload()


def test_a_plan_is_a_checklist_that_is_updated_in_place(start: Start, program: Program, open_page: Open) -> None:
    """X5: each update changes the one list where it stands, live and after a reload; text before and after it stays."""
    served = start()
    page = open_page(f"{served.url}/c/{open_session(served)}")

    def plan(*entries: tuple[str, str]) -> dict[str, Any]:
        listed = [{"content": content, "status": status, "priority": "medium"} for content, status in entries]
        return update("plan", entries=listed)

    send(
        page,
        play(
            {"say": "I begin. "},
            plan(("Look", "in_progress"), ("Paint", "pending")),
            {"say": "I go on. "},
            {"wait": "go"},
            plan(("Look", "completed"), ("Paint", "in_progress"), ("Clean up", "pending")),
            {"say": "Done."},
        ),
        shows="I go on.",
    )
    card = page.get_by_role("region", name="Plan")
    items = card.get_by_role("listitem")
    expect(card).to_contain_text("0 of 2 done")
    expect(items.nth(0).get_by_role("img", name="In progress")).to_be_visible()
    assert axe_violations(page) == []
    program.let("go")
    expect(answers(page)).to_contain_text("Done.")
    wait_idle(page)
    for _ in range(2):
        expect(card).to_have_count(1)
        expect(card).to_contain_text("1 of 3 done")
        expect(items).to_have_text(["✓ Look", "◐ Paint", "○ Clean up"])
        expect(answers(page)).to_have_text(re.compile("I begin.*Look.*I go on.*Done", re.DOTALL))
        page.reload()


PASSWORD: Final = "correct horse battery"


def test_an_agent_is_added_tested_edited_and_removed(
    start: Start, program: Program, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """A program needs a password and a recent login; the test shows progress, name, version and capabilities, and a
    login that is missing; removed, it is gone from the picker."""
    console_errors.expect("401", "403")
    served = start(password=PASSWORD)
    page = open_page(served.url)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    start_chatting(page)
    expect(message_box(page)).to_be_visible()
    page.goto(f"{served.url}/settings#tools")
    tools = page.get_by_role("region", name="Agents and tools", exact=True)
    button(tools, "Add agent").click()
    form = page.get_by_role("dialog", name="Add agent")
    section = program.section()
    form.get_by_role("textbox", name="Name").fill("mine")
    form.get_by_label("Command").fill(" ".join([section["command"], *section["args"]]))
    button(form, "Add variable").click()
    form.get_by_role("textbox", name="Name").last.fill("MY_KEY")
    form.get_by_label("Value of MY_KEY").fill("secret")
    KeyFile(served.data_dir).change(
        lambda ring: replace(
            ring, logins=tuple(replace(login, created_at=login.created_at - 400) for login in ring.logins)
        )
    )
    button(form, "Add").click()
    asking = page.get_by_role("dialog", name="Confirm your password")
    asking.get_by_label("Password").fill(PASSWORD)
    button(asking, "Continue").click()
    item = tools.get_by_role("listitem").filter(has=page.get_by_text("mine", exact=True))
    expect(item).to_contain_text("Variables: MY_KEY")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/agents/mine/test", hold)
    button(item, "Test: mine").click()
    expect(item.get_by_role("status")).to_contain_text("Starting mine… 1 s")
    expect(button(item, "Test: mine")).to_be_disabled()
    held[0].continue_()
    page.unroute("**/api/agents/mine/test")
    expect(item.get_by_role("status")).to_contain_text("Scripted 1.2.3 answered in")
    expect(item.get_by_role("status")).to_contain_text("Supports: load sessions.")
    program.behave("login")
    button(item, "Test: mine").click()
    expect(item.get_by_role("status")).to_contain_text("Login required.")
    expect(item).to_contain_text("Test failed")
    page.reload()
    expect(item).to_contain_text("needs a login")
    program.behave("")
    button(item, "Test: mine").click()
    expect(item.get_by_role("status")).to_contain_text("Supports: load sessions.")
    expect(item).to_contain_text("Available")
    assert axe_violations(page) == []
    button(item, "Edit: mine").click()
    edit = page.get_by_role("dialog", name="Edit mine")
    edit.get_by_label("Working directory (optional)").fill(str(program.home))
    button(edit, "Save").click()
    expect(item).to_contain_text(f"in {program.home}")
    button(item, "Remove: mine").click()
    button(page.get_by_role("dialog", name="Remove mine?"), "Remove").click()
    expect(item).to_have_count(0)


def test_without_a_password_no_agent_can_be_added(
    start: Start, program: Program, open_page: Open, tmp_path: Path
) -> None:
    """The page says so before anything is typed; a missing program has its reason and the command that would download
    it."""
    npx = tmp_path / "bin" / "npx"
    npx.parent.mkdir()
    npx.write_text("#!/bin/sh\n")
    npx.chmod(0o700)
    served = start(environment={"PATH": str(npx.parent)})
    page = open_page(f"{served.url}/settings#tools")
    tools = page.get_by_role("region", name="Agents and tools", exact=True)
    expect(button(tools, "Add agent")).to_be_disabled()
    expect(tools).to_contain_text("Adding an agent needs a password")
    gemini = tools.get_by_role("listitem").filter(has_text="@google/gemini-cli")
    expect(gemini).to_contain_text("gemini was not found on the PATH")
    expect(gemini).to_contain_text("npx -y @google/gemini-cli --acp")
    expect(button(gemini, "Use npx: gemini")).to_be_disabled()


def test_a_missing_program_is_used_through_npx(
    start: Start, program: Program, open_page: Open, console_errors: ConsoleErrors, tmp_path: Path
) -> None:
    """The form has npx and the package; stored, npx starts the program, which is tested and answers."""
    section = program.section()
    npx = tmp_path / "bin" / "npx"
    npx.parent.mkdir()
    command = shlex.join([section["command"], *section["args"]])
    npx.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nexec {command}\n')
    npx.chmod(0o700)
    served = start(password=PASSWORD, environment={"PATH": f"{npx.parent}:/usr/bin:/bin"})
    page = open_page(served.url)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    start_chatting(page)
    expect(message_box(page)).to_be_visible()
    console_errors.expect("401")
    page.goto(f"{served.url}/settings#tools")
    tools = page.get_by_role("region", name="Agents and tools", exact=True)
    gemini = tools.get_by_role("listitem").filter(has_text="@google/gemini-cli")
    assert not (tmp_path / "asked").exists()
    button(gemini, "Use npx: gemini").click()
    form = page.get_by_role("dialog")
    expect(form.get_by_label("Command")).to_have_value("npx -y @google/gemini-cli --acp")
    form.get_by_role("button", name=re.compile("^(Add|Save)$")).click()
    expect(form).to_have_count(0)
    item = tools.get_by_role("listitem").filter(has=page.get_by_text("gemini", exact=True))
    button(item, "Test: gemini").click()
    expect(item.get_by_role("status")).to_contain_text("Scripted 1.2.3 answered in")
    assert (tmp_path / "asked").read_text() == "-y @google/gemini-cli --acp\n"
    page.goto(served.url)
    choose_agent(page, "gemini")
    send(page, play({"say": "Through npx."}), shows="Through npx.")
    wait_idle(page)
