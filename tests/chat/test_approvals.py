"""Approvals over HTTP with the real agent and its real tools."""

import json
from typing import Any

import pytest

from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.chat.questions import asked, decide, effects, note, results
from tests.http.client import Served
from tests.http.conftest import Start
from tests.upstream import End, Head, Script, delta, says, sse


def write(call_id: str, name: str) -> tuple[str, str, Any]:
    return call_id, "write_file", {"path": name, "content": name}


def turn(
    served: Served, up: ScriptedModelServer, model: str, *scripts: Script, sid: str | None = None
) -> tuple[str, str]:
    """Begin a turn with a model of its own; session and run."""
    up.play(model, *scripts)
    sid = sid or served.session(title="A person's")
    return sid, served.begin(sid, "Go", model=f"{PROVIDER}/{model}")


def workspace(served: Served, sid: str) -> list[str]:
    directory = served.data_dir / "workspaces" / sid
    return sorted(file.name for file in directory.iterdir()) if directory.exists() else []


def test_reading_is_free_and_changing_asks(shared: Served, up: ScriptedModelServer) -> None:
    """X5: by default a run reads without asking and asks before it writes, edits or runs a command; nothing has
    happened until the answer is there."""
    sid, rid = turn(
        shared,
        up,
        "defaults",
        calls(("c1", "list_files", {}), write("c2", "a")),
        calls(("c3", "read_file", {"path": "a"}), ("c4", "edit_file", {"path": "a", "old": "a", "new": "b"})),
        calls(("c5", "shell", note("ran"))),
        says("Done."),
    )
    for call_id, name in (("c2", "write_file"), ("c4", "edit_file"), ("c5", "shell")):
        question = asked(shared, rid)
        assert (question["call_id"], question["name"]) == (call_id, name)
        assert {"c2": [], "c4": ["a"], "c5": ["a"]}[call_id] == workspace(shared, sid)
        decide(shared, rid, "once")
    assert shared.ended(rid)["status"] == "complete"
    assert effects(shared, sid) == ["ran"]
    assert [part["state"] for part in shared.answer(sid)["parts"][:-1]] == ["done"] * 5
    assert results(up.asked("defaults", 3))["c3"] == "a"


def test_session_is_for_one_session(shared: Served, up: ScriptedModelServer) -> None:
    """X5: the tool asks no more in this session, in this run and the next, and does in another session."""
    sid, rid = turn(shared, up, "session", calls(write("c1", "a")), calls(write("c2", "b")), says("Done."))
    decide(shared, rid, "session")
    assert shared.ended(rid)["status"] == "complete"
    _, rid = turn(shared, up, "session 2", calls(write("c1", "c")), says("Done."), sid=sid)
    assert shared.ended(rid)["status"] == "complete"
    assert workspace(shared, sid) == ["a", "b", "c"]
    _, rid = turn(shared, up, "session 3", calls(write("c1", "a")), says("Done."))
    assert asked(shared, rid)["call_id"] == "c1"
    shared.cancel(rid)


def test_always_is_for_all_sessions(start: Start, up: ScriptedModelServer) -> None:
    """X5: and it is remembered over a restart."""
    served = start()
    _, rid = turn(served, up, "always", calls(write("c1", "a")), says("Done."))
    decide(served, rid, "always")
    served.ended(rid)
    served.kill()
    served = start()
    sid, rid = turn(served, up, "always 2", calls(write("c1", "b")), says("Done."))
    assert served.ended(rid)["status"] == "complete"
    assert workspace(served, sid) == ["b"]


@pytest.mark.parametrize("has_password", [False, True], ids=["open", "with a password"])
def test_always_for_the_shell_needs_a_password(start: Start, up: ScriptedModelServer, has_password: bool) -> None:
    """X5: on an open server *always* counts once for the shell, in this session and in others; behind a password it
    counts for good."""
    served = enter(start(password="correct horse" if has_password else None))
    model = f"always shell {has_password}"
    _, rid = turn(
        served, up, model, calls(("c1", "shell", note("one"))), calls(("c2", "shell", note("two"))), says("Y")
    )
    decide(served, rid, "always")
    if not has_password:
        assert decide(served, rid, "once")["call_id"] == "c2"
    assert served.ended(rid)["status"] == "complete"
    sid, rid = turn(served, up, f"{model} 2", calls(("c1", "shell", note("three"))), says("Y"))
    if not has_password:
        assert effects(served, sid) == []
        decide(served, rid, "once")
    assert served.ended(rid)["status"] == "complete"
    assert effects(served, sid) == ["three"]


def enter(served: Served) -> Served:
    """As a client on the machine does: with the token that only its user can read."""
    token = json.loads((served.data_dir / "server.json").read_text())["token"]
    served.http.headers["Authorization"] = f"Bearer {token}"
    return served


def test_rules_of_the_config(start: Start, up: ScriptedModelServer) -> None:
    """X5: *deny* is answered without asking anybody, *allow* runs; the shell of an open server asks in spite of it."""
    served = start(more={"tools": {"write_file": "allow", "edit_file": "deny", "shell": "allow"}})
    sid, rid = turn(
        served,
        up,
        "rules",
        calls(write("c1", "a"), ("c2", "edit_file", {"path": "a", "old": "a", "new": "b"}), ("c3", "shell", note("1"))),
        says("Done."),
    )
    assert decide(served, rid, "once")["call_id"] == "c3"
    assert served.ended(rid)["status"] == "complete"
    assert (served.data_dir / "workspaces" / sid / "a").read_text() == "a"
    assert "blocked by the user's tool permissions" in results(up.asked("rules", 2))["c2"]


def test_what_a_provider_signed_goes_back_after_the_answer(start: Start, up: ScriptedModelServer) -> None:
    """X5: opaque data of a call is not lost while the run waits, not even with the server."""
    signed = {"google": {"thought_signature": "c2lnbmVk"}}
    call = {"index": 0, "id": "c1", "function": {"name": "shell", "arguments": json.dumps(note("ran"))}}
    asks = [delta(tool_calls=[{**call, "extra_content": signed}]), delta(finish="tool_calls")]
    served = start()
    sid, rid = turn(served, up, "signed", [Head(), *sse(*asks, "[DONE]"), End()], says("Done."))
    asked(served, rid)
    served.kill()
    served = start()
    decide(served, rid, "once")
    assert served.ended(rid)["status"] == "complete"
    assert effects(served, sid) == ["ran"]
    (said,) = [m for m in up.asked("signed", 2)["messages"] if m["role"] == "assistant"]
    assert said["tool_calls"][0]["extra_content"] == signed
