"""*Allow and continue*: a call that nobody answered in time is allowed later, and the program is prompted again."""

from typing import Any

import pytest

from tests.acp.conftest import Program, open_session, play
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Deny", "kind": "reject_once"},
]
NO_ANSWER = "Nobody answered in time, so it was denied."


def asks(command: str = "rm x", call_id: str = "t1") -> dict[str, Any]:
    call = {"toolCallId": call_id, "kind": "execute", "title": command, "rawInput": {"command": command}}
    return {"ask": call, "options": OPTIONS}


def finishes(call_id: str = "t1") -> dict[str, Any]:
    return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "completed"}}


def unanswered(served: Served, *actions: dict[str, Any]) -> tuple[str, str]:
    """A session and its run, in which nobody answered."""
    sid = open_session(served)
    rid = served.begin(sid, play(*(actions or (asks(), finishes()))))
    assert served.ended(rid)["status"] == "complete"
    return sid, rid


def tools(served: Served, sid: str) -> list[tuple[str, Any]]:
    return [(part["state"], part["result"]) for part in served.answer(sid)["parts"] if part["type"] == "tool"]


def test_a_call_that_nobody_answered_is_allowed_later(start: Start, program: Program) -> None:
    """X5: the program is prompted again in its session, asks again, and gets the answer without a second question; the
    earlier denial stays in the message."""
    served = start(section={"answer_within": 1.0})
    sid, rid = unanswered(served)
    assert tools(served, sid) == [("denied", NO_ANSWER)]
    accepted = served.post(f"/api/runs/{rid}/continue", {"allow": ["t1"]}, expect=202)["run"]
    assert (accepted["continues"], served.ended(accepted["id"])["status"]) == (rid, "complete")
    assert [answer["optionId"] for answer in program.lines("answers")] == ["no", "yes"]
    assert tools(served, sid) == [("denied", f"{NO_ANSWER} You allowed it later."), ("done", None)]
    events = [frame.event for frame in served.events(accepted["id"])]
    assert "approval.requested" not in events
    first, second = program.prompts
    assert (first["session"], first["pid"]) == (second["session"], second["pid"])
    assert "The user now allows it" in second["text"]


def test_the_first_of_several_clicks_counts(start: Start, program: Program) -> None:
    """O4: a repeat returns the same run, also after a restart, with other keys; another set of calls is refused, and so
    is a call that a person denied."""
    served = start(section={"answer_within": 1.0})
    sid, rid = unanswered(served)
    path, body = f"/api/runs/{rid}/continue", {"allow": ["t1"]}
    served.refused("not-allowed", "POST", path, {"allow": ["t2"]})
    served.refused("not-allowed", "POST", path, {})
    runs = {served.post(path, body, expect=202, headers={"Idempotency-Key": key})["run"]["id"] for key in "ab"}
    assert served.ended(next(iter(runs)))["status"] == "complete"
    served.kill()
    served = start(section={"answer_within": 1.0})
    runs.add(served.post(path, body, expect=202)["run"]["id"])
    assert len(runs) == 1
    for other in ({"allow": ["t1", "t2"]}, {"allow": ["t1"], "model": "another"}):
        detail = served.refused("not-allowed", "POST", path, other)["detail"]
        assert "other calls or another model were chosen before" in detail
    served.refused("not-allowed", "POST", f"/api/runs/{runs.pop()}/continue", body)
    assert len(program.prompts) == 2
    assert len(served.messages(sid)) == 2
    own = served.begin(sid, play(finishes()), f"allow {rid}")  # what a client names its requests does not matter
    assert served.ended(own)["continues"] is None


def test_a_grant_is_for_the_same_call_once(start: Start, program: Program) -> None:
    """X5: another command, and the same one a second time, are questions to a person."""
    served = start(section={"answer_within": 2.0})
    sid, rid = unanswered(served)
    (program.home / "next").write_text(play(asks("rm -rf /", "t2"), asks(), finishes(), asks(call_id="t3")))
    again = served.post(f"/api/runs/{rid}/continue", {"allow": ["t1"]}, expect=202)["run"]["id"]
    for call_id in ("t2", "t3"):
        with served.watch(again) as stream:
            while (asked := stream.until("approval.requested").data)["call_id"] != call_id:
                pass
        served.post(f"/api/runs/{again}/approvals/{asked['approval_id']}", {"decision": "deny"})
    assert served.ended(again)["status"] == "complete"
    assert [answer["optionId"] for answer in program.lines("answers")] == ["no", "no", "yes", "no"]
    assert [state for state, _ in tools(served, sid)] == ["denied", "denied", "done", "denied"]


@pytest.mark.parametrize(("stuck", "answers"), [("step.started", ["yes"]), ("tool.finished", ["yes", "no"])])
def test_a_grant_survives_a_crash_and_is_used_once(
    start: Start, program: Program, stuck: str, answers: list[str]
) -> None:
    """X1, X5: continued by itself after a crash, the run may still make the call; if it had begun, it is asked about,
    and the program is told that it may have run."""
    served = start(section={"answer_within": 1.5})
    _, rid = unanswered(served)
    served.kill()
    served = start(section={"answer_within": 1.5}, stuck=stuck)
    again = served.post(f"/api/runs/{rid}/continue", {"allow": ["t1"]}, expect=202)["run"]["id"]
    until((served.data_dir / "stuck").exists)
    served.kill()
    (served.data_dir / "stuck").unlink()
    (program.home / "next").write_text(play(asks(), finishes()))
    served = start(section={"answer_within": 1.5}, auto_continue=True)
    assert served.ended(again)["status"] == "complete"
    assert [answer["optionId"] for answer in program.lines("answers")][1:] == answers
    assert ("outcome is unknown" in program.prompts[-1]["text"]) == (stuck == "tool.finished")


def test_a_call_with_arguments_left_out_cannot_be_allowed_later(start: Start, program: Program) -> None:
    """X5: two calls that are too long to be shown look the same, so neither is offered, nor allowed by a grant for the
    other."""
    served = start(section={"answer_within": 1.0})
    edit = {"toolCallId": "t1", "kind": "edit", "title": "Edit file"}
    long = {**edit, "rawInput": {"path": "readme.md", "content": "x" * 200_000}}
    sid, rid = unanswered(served, {"ask": long, "options": OPTIONS}, finishes())
    ((state, result),) = tools(served, sid)
    assert (state, result) == ("denied", f"{NO_ANSWER} It is not shown in full, so it cannot be allowed later.")
    served.refused("not-allowed", "POST", f"/api/runs/{rid}/continue", {"allow": ["t1"]})
    assert [answer["optionId"] for answer in program.lines("answers")] == ["no"]
