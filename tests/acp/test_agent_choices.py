"""What users choose for an agent program: where it works, its mode, model and commands, and which there are."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from tests.acp.conftest import Program, open_session, play
from tests.http.client import Served
from tests.http.conftest import Start

MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "edit", "name": "Accept edits"}],
}
CONFIG = [
    {
        "id": "model",
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": "small",
        "options": [{"group": "g", "name": "All", "options": [{"value": "small", "name": "Small"}]}],
    },
    {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False},
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "projects" / "one"
    directory.mkdir(parents=True)
    return directory


def values(served: Served, sid: str) -> dict[str, Any]:
    found = served.get(f"/api/agents/scripted/options?session_id={sid}")
    return {option["id"]: option["value"] for option in found["options"]}


def test_a_chat_works_in_the_directory_that_was_chosen(start: Start, program: Program, project: Path) -> None:
    """X5: the program starts there, the choice survives a restart, a fork and an export, and is offered again."""
    served = start(agent_directories=[str(project.parent)])
    sid = open_session(served, cwd=f"{project}/../one")
    assert served.get(f"/api/sessions/{sid}")["cwd"] == str(project)
    served.turn(sid, play({"call": "write_text_file", "params": {"path": f"{project}/made", "content": "x"}}))
    assert program.lines("cwd") == [str(project)]
    assert (project / "made").read_text() == "x"
    assert served.get("/api/agents/directories") == {"allowed": [str(project.parent)], "recent": [str(project)]}
    served.kill()
    served = start(agent_directories=[str(project.parent)])
    fork = served.post(f"/api/sessions/{sid}/fork", {"message_id": served.answer(sid)["id"]}, expect=201)
    assert fork["cwd"] == str(project)
    exported = served.http.get(f"/api/sessions/{sid}/export").text
    assert json.loads(exported.splitlines()[0])["settings"]["cwd"] == str(project)
    assert served.call("PATCH", f"/api/sessions/{sid}", {"cwd": None})["cwd"] is None


def test_only_allowed_directories_can_be_chosen(start: Start, project: Path) -> None:
    """X5: a path that leads out by a link, is no directory, or holds the server's data is refused with the reason."""
    served = start(agent_directories=[str(project.parent), str(project.parent.parent / "data")])
    (project / "file").touch()
    (project / "out").symlink_to("/etc")
    wrong = {
        "relative/path": "absolute path",
        "/etc": "must be below",
        f"{project}/out": "must be below",
        f"{project}/none": "no directory",
        f"{project}/file": "not a directory",
        str(served.data_dir): "data directory",
    }
    for path, reason in wrong.items():
        assert (
            reason in served.refused("invalid", "POST", "/api/sessions", {"agent": "scripted", "cwd": path})["detail"]
        )
    refused = {"agent": "scripted", "settings": {"cwd": "/etc"}}
    served.refused("invalid", "POST", "/api/sessions", refused)
    sid = open_session(served, cwd=str(project))
    (project / "file").unlink()
    (project / "out").unlink()
    project.rmdir()
    run = served.ended(served.begin(sid, "go"))
    assert (run["status"], run["error"]["code"]) == ("failed", "agent-directory")


def test_a_mode_is_set_once_and_the_program_may_change_it(start: Start, program: Program) -> None:
    """X5: the chosen mode is set before the prompt, at once in a running program, and not again after the program
    changed it itself; commands are known."""
    (program.home / "offers").write_text(json.dumps({"modes": MODES}))
    (program.home / "commands").write_text(
        json.dumps([{"name": "plan", "description": "Make a plan", "input": {"hint": "what for"}}])
    )
    served = start()
    sid = open_session(served, agent_options={"mode": "edit", "unknown": "x"})
    served.turn(sid, play({"say": "one"}))
    assert program.lines("chosen") == [["mode", "edit"]]
    assert values(served, sid) == {"mode": "edit"}
    changed = {"update": {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}}
    served.turn(sid, play(changed, {"say": "two"}))
    assert values(served, sid) == {"mode": "ask"}
    served.call("PATCH", f"/api/sessions/{sid}", {"agent_options": {"mode": "ask"}})
    assert program.lines("chosen") == [["mode", "edit"], ["mode", "ask"]]
    offered = served.get("/api/agents/scripted/options")
    assert offered["commands"] == [{"name": "plan", "description": "Make a plan", "hint": "what for"}]
    assert [choice["name"] for choice in offered["options"][0]["choices"]] == ["Ask", "Accept edits"]
    served.call("PATCH", f"/api/sessions/{sid}", {"agent_options": {"mode": "edit"}})
    no_such = {"agent_options": {"mode": "never"}}
    assert "no Mode" in served.refused("invalid", "PATCH", f"/api/sessions/{sid}", no_such)["detail"]


def test_a_refused_mode_is_neither_stored_nor_taken_for_set(start: Start, program: Program) -> None:
    """X5: a choice that the program refuses is an error and changes nothing; the same choice is sent again, and so is
    the stored one with the next turn."""
    (program.home / "offers").write_text(json.dumps({"modes": MODES}))
    served = start()
    sid = open_session(served, agent_options={"mode": "ask"})
    served.turn(sid, play({"say": "one"}))
    program.let("refuse")
    edit = {"agent_options": {"mode": "edit"}}
    assert "busy" in served.refused("invalid", "PATCH", f"/api/sessions/{sid}", edit)["detail"]
    assert served.get(f"/api/sessions/{sid}")["agent_options"] == {"mode": "ask"}
    assert values(served, sid) == {"mode": "ask"}
    served.turn(sid, play({"say": "two"}))
    assert served.call("PATCH", f"/api/sessions/{sid}", edit)["agent_options"] == {"mode": "edit"}
    assert program.lines("chosen") == [["mode", name] for name in ("ask", "edit", "ask", "edit")]
    assert values(served, sid) == {"mode": "edit"}


def test_a_mode_that_fails_at_a_turn_is_tried_with_the_next(start: Start, program: Program) -> None:
    """X5: the run says that the mode could not be set instead of working in another one."""
    (program.home / "offers").write_text(json.dumps({"modes": MODES}))
    served = start()
    sid = open_session(served, agent_options={"mode": "edit"})
    program.let("refuse")
    run = served.ended(served.begin(sid, play({"say": "one"})))
    assert (run["status"], "busy" in run["error"]["message"]) == ("failed", True)
    assert program.prompts == []
    served.turn(sid, play({"say": "two"}))
    assert program.lines("chosen") == [["mode", "edit"]] * 2


def test_config_options_are_set(start: Start, program: Program) -> None:
    """X5: options with choices in groups and switches are set as the protocol has them; the choice is shown before the
    program runs again."""
    (program.home / "offers").write_text(json.dumps({"configOptions": CONFIG}))
    served = start()
    sid = open_session(served, agent_options={"model": "small", "fast": True})
    served.turn(sid, play({"say": "one"}))
    assert program.lines("chosen") == [["model", "small"], ["fast", True]]
    served.kill()
    served = start()
    assert values(served, sid) == {"model": "small", "fast": True}


def test_an_agent_is_added_used_and_removed(start: Start, program: Program) -> None:
    """An added program is listed, tested and used; its variables are never returned; it needs a password and cannot
    replace what the configuration defines."""
    served = start(password="correct horse")
    served.post("/api/login", {"password": "correct horse"}, 204)
    section = program.section()
    body = {"command": section["command"], "args": section["args"], "env": {"MY_KEY": "secret"}}
    served.call("PUT", "/api/agents/mine", body, 204)
    agents = {item["name"]: item for item in served.get("/api/agents")["items"]}
    assert (agents["mine"]["editable"], agents["mine"]["env"], agents["mine"]["available"]) == (True, ["MY_KEY"], True)
    assert (agents["scripted"]["editable"], agents["scripted"]["is_program"]) == (False, True)
    tested = served.post("/api/agents/mine/test")
    assert (tested["ok"], tested["login_required"], tested["session_problem"]) == (True, False, None)
    assert tested["capabilities"] == ["load sessions"]
    sid = served.session(agent="mine")
    assert served.turn(sid, play({"say": "Here."}))["parts"][0]["text"] == "Here."
    served.refused("invalid", "PUT", "/api/agents/scripted", body)
    served.refused("invalid", "PUT", "/api/agents/chat", body)
    served.refused("not-allowed", "DELETE", "/api/agents/scripted")
    served.call("PUT", "/api/agents/mine", {**body, "args": ["other"], "env": None}, 204)
    assert {item["name"]: item for item in served.get("/api/agents")["items"]}["mine"]["env"] == []
    served.call("DELETE", "/api/agents/mine", expect=204)
    served.refused("not-found", "POST", "/api/agents/mine/test")
    assert served.ended(served.begin(sid, "go"))["error"]["code"] == "no-agent"


@pytest.mark.parametrize("path", ["/api/mcp", "/api/agents"])
def test_parallel_changes_are_all_kept(start: Start, path: str) -> None:
    """A2: each agent or MCP server whose change was acknowledged is there, and each is removed alone."""
    served = start(password="correct horse")
    served.post("/api/login", {"password": "correct horse"}, 204)
    names = [f"m{number}" for number in range(20)]
    with ThreadPoolExecutor(20) as clients:
        put = [clients.submit(served.call, "PUT", f"{path}/{name}", {"command": "true"}, 204) for name in names]
        wait(put)
        stored = {item["name"] for item in served.get(path)["items"]}
        assert stored >= set(names)
        dropped = [clients.submit(served.call, "DELETE", f"{path}/{name}", None, 204) for name in names]
    assert [each.exception() for each in put + dropped] == [None] * 40
    assert {item["name"] for item in served.get(path)["items"]} == stored - set(names)


def test_a_login_that_is_missing_is_named_by_the_test(start: Start, program: Program) -> None:
    """A program that answers `initialize` and opens no session without a login is reported as such; without a
    password no program can be added."""
    program.behave("login")
    served = start()
    tested = served.post("/api/agents/scripted/test")
    assert (tested["ok"], tested["login_required"]) == (True, True)
    served.refused("not-allowed", "PUT", "/api/agents/mine", {"command": sys.executable})


def test_npx_is_named_and_never_run(start: Start, tmp_path: Path) -> None:
    """A known program that is missing has the command that would download it; listing runs nothing."""
    npx = tmp_path / "bin" / "npx"
    npx.parent.mkdir()
    npx.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    npx.chmod(0o700)
    served = start(environment={"PATH": str(npx.parent)})
    agents = {item["name"]: item for item in served.get("/api/agents")["items"]}
    assert agents["gemini"]["npx_command"] == ["npx", "-y", "@google/gemini-cli", "--acp"]
    assert (agents["gemini"]["available"], agents["hermes"]["npx_command"]) == (False, None)
    assert not (tmp_path / "ran").exists()
