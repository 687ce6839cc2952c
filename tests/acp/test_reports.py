"""What a program reports besides its answer: terminals, several edits in one call, its context, and its defaults."""

import json
from typing import Any

from tests.acp.conftest import Program, open_session, play
from tests.acp.test_agent_choices import MODES
from tests.http.conftest import Start


def update(name: str, **fields: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": name, **fields}}


def test_a_terminal_is_the_output_of_the_call_that_shows_it(start: Start, program: Program) -> None:
    """X5: what the command prints is output of the call, before and after it names the terminal, and its result; a
    command without a call is not shown."""
    served = start()
    sid = open_session(served)
    shown = [{"type": "terminal", "terminalId": "term_1"}]
    workspace = served.data_dir / "workspaces" / sid  # of the command, which is sandboxed
    script = "echo one; touch printed; until test -e go; do sleep 0.02; done; echo two"
    rid = served.begin(
        sid,
        play(
            {"call": "create_terminal", "params": {"command": script}},
            {"call": "create_terminal", "params": {"command": "echo unseen"}},
            {"call": "wait_for_terminal_exit", "params": {"terminal_id": "term_2"}},
            {"wait": str(workspace / "printed")},
            update("tool_call", toolCallId="t1", title="Build", kind="execute", content=shown),
            {"touch": str(workspace / "go")},
            {"call": "wait_for_terminal_exit", "params": {"terminal_id": "term_1"}},
            {"call": "release_terminal", "params": {"terminal_id": "term_1"}},
            update("tool_call_update", toolCallId="t1", status="completed"),
        ),
    )
    assert served.ended(rid)["status"] == "complete"
    (part,) = served.answer(sid)["parts"]
    assert (part["output"], part["result"], part["state"]) == ("one\ntwo\n", "one\ntwo\n", "done")


def test_several_edits_of_one_call_are_all_kept(start: Start) -> None:
    """X5: each has its file, its old and its new text."""
    served = start()
    sid = open_session(served)
    diffs = [{"type": "diff", "path": f"/w/{name}", "oldText": None, "newText": name} for name in ("a", "b")]
    served.turn(sid, play(update("tool_call", toolCallId="t1", title="Edit", kind="edit", content=diffs), {"say": "."}))
    edits = served.answer(sid)["parts"][0]["args"]["edits"]
    assert edits == [{"path": f"/w/{name}", "old_text": "", "new_text": name} for name in ("a", "b")]


def test_the_context_that_a_program_reports_is_the_sessions(start: Start) -> None:
    """The meter shows what the program said, also after a restart and a turn that said nothing about it; without a
    report there is nothing to show."""
    served = start()
    sid = open_session(served)
    served.turn(sid, play({"say": "one"}))
    assert served.get(f"/api/sessions/{sid}/context") == {"model": "scripted", "used": 0, "limit": None}
    served.turn(sid, play(update("usage_update", used=5000, size=200_000), {"say": "two"}))
    served.kill()
    served = start()
    served.turn(sid, play({"say": "three"}))
    assert served.get(f"/api/sessions/{sid}/context") == {"model": "scripted", "used": 5000, "limit": 200_000}


def test_a_choice_in_one_chat_is_not_the_default_of_the_next(start: Start, program: Program) -> None:
    """X5: the default is what the program begins a new session with, whatever was chosen in the last one."""
    (program.home / "offers").write_text(json.dumps({"modes": MODES}))
    served = start()
    sid = open_session(served, agent_options={"mode": "edit"})
    served.turn(sid, play({"say": "one"}))
    for path, value in ((f"?session_id={sid}", "edit"), ("", "ask")):
        (mode,) = served.get(f"/api/agents/scripted/options{path}")["options"]
        assert (mode["value"], mode["default"]) == (value, "ask")


def test_a_directory_is_checked_before_a_chat_has_it(start: Start, program: Program) -> None:
    """The answer is the directory without links, or the reason why it cannot be chosen."""
    served = start(agent_directories=[str(program.home)])
    path = "/api/agents/directories/check"
    assert served.post(path, {"path": f"{program.home}/../program"}) == {"path": str(program.home)}
    assert "must be below" in served.refused("invalid", "POST", path, {"path": "/etc"})["detail"]
