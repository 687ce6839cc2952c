"""Section E over HTTP: a run that fails keeps what was said to it and by it, and leaves a session that works."""

import json
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said, shown, until

ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "the provider refuses": ({"fail": ["provider", "The provider answered 500. Try again in a minute."]}, "provider"),
    "an exception": ({"crash": True}, "internal"),
}


def attach(server: Served, text: str) -> list[dict[str, str]]:
    """Input with a file."""
    file = server.post("/api/files", expect=201, files={"file": ("a.txt", b"attached", "text/plain")})
    return [{"type": "text", "text": text}, {"type": "file", "file_id": file["id"]}]


def works(server: Served, sid: str) -> None:
    """The session has no active run, nothing is held, and the next turn is answered."""
    assert server.look(sid)["active_run"] is None
    assert server.order(upstreams=True) == 0
    assert said(server.turn(sid, "fine")) == "fine"


@pytest.mark.parametrize("how", ENDS)
def test_a_failed_run_keeps_question_partial_and_one_notice(server: Served, how: str) -> None:
    """E1 E2: message, time, attachment and partial are kept, with one error that a person can act on."""
    action, code = ENDS[how]
    sid = server.session()
    script = [{"think": "hm "}, {"say": "half "}, {"call": "a", "result": 1}, action]
    parts = attach(server, json.dumps(script))
    taken = server.post(f"/api/sessions/{sid}/runs", {"input": parts}, 202)
    run = server.ended(taken["run"]["id"])
    frames = server.events(run["id"])
    assert (run["status"], run["error"]["code"]) == ("failed", code)
    assert run["error"]["message"].endswith(".")
    assert [frame.event for frame in frames if frame.event.startswith("run.")] == ["run.started", "run.failed"]
    assert frames[-1].data["error"] == run["error"]
    question, answer = server.messages(sid)
    assert question == taken["message"]
    assert (answer["status"], answer["error"]) == ("failed", run["error"])
    assert [part["type"] for part in answer["parts"][:3]] == ["reasoning", "text", "tool"]
    assert said(answer) == shown(frames)
    assert said(answer).startswith("half ")
    works(server, sid)
    assert [message["id"] for message in server.messages(sid)][:2] == [question["id"], answer["id"]]


def test_an_error_before_anything_is_held(server: Served) -> None:
    """E3: there is no such agent: the run fails and says what to do."""
    sid = server.session(agent="nobody")
    answer = server.turn(sid, "hello")
    assert (answer["status"], answer["error"]["code"], answer["parts"]) == ("failed", "no-agent", [])
    assert "nobody" in answer["error"]["message"]
    server.call("PATCH", f"/api/sessions/{sid}", {"agent": "chat"}, 200)
    works(server, sid)


def test_an_answer_without_anything_in_it_has_failed(server: Served) -> None:
    """E4: a stream that ends without text, reasoning or tool call is a failed run."""
    sid = server.session()
    answer = server.turn(sid, [{"step": 0}, {"usage": [3, 0]}])
    assert (answer["status"], answer["error"]["code"], answer["parts"]) == ("failed", "empty-answer", [])
    works(server, sid)


def test_an_outage_does_not_flood_the_log(start: Start) -> None:
    """However many requests fail while the store is away, the log has a line when that begins and one when it ends."""
    server = start(engine={"poll_interval": 0.05})
    server.order(store_away=True)
    until(lambda: "claiming queued runs fails" in server.complaints)
    for _ in range(20):
        server.refused("storage-unavailable", "GET", "/api/sessions")
    server.order(store_away=False)
    until(lambda: "claiming queued runs works again" in server.complaints)
    assert "Traceback" not in server.complaints
    assert len(server.complaints.splitlines()) <= 6
