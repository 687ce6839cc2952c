"""Steering, questions of the model, and cancel without the id of a run, over HTTP."""

from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said

STEPS = [{"say": "one "}, {"meet": "here"}, {"steering": True}, {"say": "two"}]
ASKS = [
    {"say": "one "},
    {"call": "q", "name": "ask_user", "args": {"question": "Which port?", "options": ["80"]}, "asks_user": True},
    {"say": "two"},
]


def steer(server: Served, rid: str, text: str, key: str = "s", expect: int = 202) -> Any:
    return server.post(f"/api/runs/{rid}/steer", {"text": text}, expect, headers={"Idempotency-Key": key})


def test_text_is_added_to_the_running_answer(server: Served) -> None:
    """A1, A2: until its next step it is a queued message that names the run; then it is a part of the answer."""
    sid = server.session()
    rid = server.stand(sid, STEPS)
    accepted = steer(server, rid, "shorter")
    assert (accepted["run"]["steers"], accepted["run"]["status"]) == (rid, "queued")
    (queued,) = server.get(f"/api/sessions/{sid}")["queued_runs"]
    assert queued["run"]["id"] == accepted["run"]["id"]
    with server.watch(rid) as stream:
        server.order(open="here")
        steered = stream.until("message.steered").data
        stream.rest()
    assert (steered["id"], steered["text"]) == (accepted["message"]["id"], "shorter")
    parts = server.answer(sid)["parts"]
    assert [part["type"] for part in parts] == ["text", "steered", "text"]
    assert parts[1] == {"type": "steered", "id": accepted["message"]["id"], "text": "shorter"}
    again = steer(server, rid, "shorter")["run"]
    assert (again["id"], again["status"], again["reason"]) == (accepted["run"]["id"], "cancelled", "steered")
    assert server.get(f"/api/sessions/{sid}")["queued_runs"] == []


def test_text_that_was_accepted_survives_a_kill(start: Start) -> None:
    """A1: killed at once, the text is the next message, and it is sent once."""
    server = start()
    sid = server.session()
    rid = server.stand(sid, STEPS)
    accepted = steer(server, rid, "shorter")
    server.kill()
    server = start()
    server.ended(accepted["run"]["id"])
    assert [said(message) for message in server.messages(sid) if message["role"] == "user"][1:] == ["shorter"]
    assert steer(server, rid, "shorter")["run"]["id"] == accepted["run"]["id"]


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": "  "}, {"text": "x" * 100_001}, {"text": 1}])
def test_what_is_no_text_is_refused(server: Served, body: Any) -> None:
    """E3: nothing is stored."""
    sid = server.session()
    rid = server.stand(sid, STEPS)
    assert server.post(f"/api/runs/{rid}/steer", body, 422)["type"] == "invalid"
    assert server.get(f"/api/sessions/{sid}")["queued_runs"] == []


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"action": "accept", "content": {"answer": "443"}}, "443"),
        ({"action": "decline"}, "The user did not answer this question. Continue without the answer."),
    ],
)
def test_a_question_of_the_model_survives_a_kill(start: Start, answer: Any, result: str) -> None:
    """X5: the run waits, over a restart too; the answer is the result of the call, and the first one counts."""
    server = start()
    sid = server.session()
    rid = server.send(sid, ASKS)["run"]["id"]
    with server.watch(rid) as stream:
        asked = stream.until("approval.requested").data
    server.kill()
    server = start()
    assert server.get(f"/api/runs/{rid}")["status"] == "waiting"
    path = f"/api/runs/{rid}/inputs/{asked['approval_id']}"
    assert server.refused("invalid", "POST", path, {"action": "accept", "content": {"answer": " "}})
    assert server.post(f"/api/runs/{rid}/approvals/{asked['approval_id']}", {"decision": "once"}, 404)
    server.post(path, answer)
    assert server.ended(rid)["status"] == "complete"
    (tool,) = [part for part in server.answer(sid)["parts"] if part["type"] == "tool"]
    assert (tool["state"], tool["result"], tool["is_error"]) == ("done", result, False)
    server.refused("already-decided", "POST", path, answer)


def test_a_run_is_cancelled_without_its_id(server: Served) -> None:
    """C1: by its session, or by the key of its request; a request that comes after its cancel is refused."""
    sid = server.session()
    path, runs = f"/api/sessions/{sid}/cancel", f"/api/sessions/{sid}/runs"
    assert server.post(path) == {"run": None}
    rid = server.stand(sid, [{"say": "half "}, {"meet": "here"}, {"hang": True}])
    assert (server.post(path)["run"]["id"], server.answer(sid)["status"]) == (rid, "cancelled")
    assert server.post(path, {"key": "late"}) == {"run": None}
    server.refused("key-canceled", "POST", runs, {"input": "late"}, headers={"Idempotency-Key": "late"})
    accepted = server.post(runs, {"input": '[{"hang": true}]'}, 202, headers={"Idempotency-Key": "k"})
    assert server.post(path, {"key": "k"})["run"]["id"] == accepted["run"]["id"]
    assert server.ended(accepted["run"]["id"])["status"] == "cancelled"
    server.refused("not-found", "POST", "/api/sessions/ses_none/cancel")
