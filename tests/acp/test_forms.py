"""Forms that a program asks the person to fill in while it works."""

from typing import Any, Final

import pytest

from tests.acp.conftest import Program, open_session, play
from tests.acp.test_turns import tool, turn
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until

PORT: Final = {
    "properties": {
        "port": {"type": "string", "title": "Port", "oneOf": [{"const": "bergen", "title": "Bergen"}]},
        "berths": {"type": "integer", "minimum": 1},
    },
    "required": ["port"],
}


def form(**about: Any) -> dict[str, Any]:
    return {"form": PORT, "message": "Which port?", "about": about}


def asked(served: Served, rid: str) -> Any:
    """Wait until a form is shown; the form."""
    with served.watch(rid) as stream:
        found = stream.until("input.requested").data
    until(lambda: served.run(rid)["status"], "waiting".__eq__)
    return found


def test_a_form_is_shown_and_its_values_go_to_the_program(start: Start, program: Program) -> None:
    """X5: the program offers the protocol's forms; the person's values fit the form, reach the program and are not in
    the journal."""
    served = start()
    sid = open_session(served)
    rid = served.begin(sid, play({"say": "One. "}, tool("t1", title="Sail"), form(toolCallId="t1"), {"say": "Two."}))
    shown = asked(served, rid)
    assert (shown["call_id"], shown["server"], shown["kind"]) == ("t1", "scripted", "form")
    assert (shown["message"], shown["schema"]) == ("Which port?", {"type": "object", **PORT})
    path = f"/api/runs/{rid}/inputs/{shown['request_id']}"
    served.refused("invalid", "POST", path, {"action": "accept", "content": {"port": "mars"}})
    served.post(path, {"action": "accept", "content": {"port": "bergen", "berths": 2}})
    assert served.ended(rid)["status"] == "complete"
    assert program.lines("answers") == [{"action": "accept", "content": {"port": "bergen", "berths": 2}}]
    assert program.lines("client")[-1]["elicitation"] == {"form": {}}
    assert "bergen" not in str([frame.data for frame in served.events(rid) if frame.event == "input.resolved"])


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_form_that_is_not_filled_in(start: Start, program: Program, action: str) -> None:
    """X5: the program is told that the person declined or cancelled, and goes on."""
    served = start()
    sid = open_session(served)
    rid = served.begin(sid, play(form(), {"say": "Then not."}))
    served.post(f"/api/runs/{rid}/inputs/{asked(served, rid)['request_id']}", {"action": action})
    assert served.ended(rid)["status"] == "complete"
    assert program.lines("answers") == [{"action": action}]


def test_a_form_that_cannot_be_shown_is_refused(start: Start, program: Program) -> None:
    """X5: the program is told why its form is refused, and nobody is asked."""
    served = start()
    sid = open_session(served)
    nested = {"properties": {"where": {"type": "object"}}}
    rid = served.begin(sid, play({"form": nested, "message": "Which?"}, {"say": "Then not."}))
    assert served.ended(rid)["status"] == "complete"
    (answer,) = program.lines("answers")
    assert "the field 'where' is not a string" in answer["error"]
    assert "input.requested" not in [frame.event for frame in served.events(rid)]


def test_a_refusal_after_a_form_is_not_prompted_again(start: Start, program: Program) -> None:
    """X5: the person is not asked the same again."""
    served = start()
    sid = open_session(served)
    turn(served, sid, {"say": "one"})
    rid = served.begin(sid, play(form(), {"stop": "refusal"}))
    served.post(f"/api/runs/{rid}/inputs/{asked(served, rid)['request_id']}", {"action": "decline"})
    assert served.ended(rid)["error"]["code"] == "refusal"
    assert len(program.prompts) == 2


def test_cancel_withdraws_a_form(start: Start, program: Program) -> None:
    """C6, X5: the form is withdrawn from the person, and the program answers the next turn in its session."""
    served = start()
    sid = open_session(served)
    rid = served.begin(sid, play({"say": "one "}, form()))
    asked(served, rid)
    assert served.cancel(rid)["status"] == "cancelled"
    (resolved,) = [frame.data for frame in served.events(rid) if frame.event == "input.resolved"]
    assert resolved["action"] == "cancel"
    turn(served, sid, {"say": "two"})
    first, second = program.prompts
    assert first["session"] == second["session"]


def test_the_server_is_killed_at_a_form(start: Start, program: Program) -> None:
    """X5: a run that was killed at a form is interrupted, and goes on in the program's session."""
    served = start()
    sid = open_session(served)
    rid = served.begin(sid, play({"say": "One. "}, form()))
    asked(served, rid)
    served.kill()
    served = start()
    until(lambda: served.run(rid)["status"], "interrupted".__eq__)
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    first, second = program.prompts
    assert first["session"] == second["session"]
    assert "One." in second["text"]
