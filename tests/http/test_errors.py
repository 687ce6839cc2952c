"""Section E over HTTP: a run that fails keeps what was said to it and by it, and leaves a session that works."""

import json
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said, shown, until

ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "the provider refuses": ({"fail": ["provider", "The provider answered 500. Try again in a minute."]}, "provider"),
    "a malformed chunk": ({"fail": ["malformed", "The provider sent what is not JSON. Try again."]}, "malformed"),
    "an exception": ({"crash": True}, "internal"),
    "a time-out": ({"hang": True}, "limit"),
    "too much output": ({"say": "x" * 5000}, "limit"),
}
LIMITS = {"a time-out": {"idle_limit": 0.4}, "too much output": {"max_output": 4000}}


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
def test_a_failed_run_keeps_question_partial_and_one_notice(start: Start, how: str) -> None:
    """E1 E2: message, time, attachment and partial are kept, with one error that a person can act on."""
    action, code = ENDS[how]
    server = start(engine=LIMITS.get(how, {}))
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


@pytest.mark.parametrize("how", ["first", "repeat", "retry", "continue", "restart"])
def test_the_question_is_there_once(start: Start, how: str) -> None:
    """E2: whatever comes after a failure, the user's message is there once."""
    server = start()
    sid = server.session()
    script = [{"say": "half "}, {"fail": ["provider", "Try again."]}]
    rid = server.begin(sid, script, key="k")
    server.ended(rid)
    mid = server.messages(sid)[0]["id"]
    if how == "repeat":
        assert server.begin(sid, script, key="k") == rid
    elif how == "retry":
        server.ended(server.post(f"/api/sessions/{sid}/retry", {"message_id": mid}, 202)["run"]["id"])
    elif how == "continue":
        server.ended(server.post(f"/api/runs/{rid}/continue", {}, 202)["run"]["id"])
    elif how == "restart":
        server.kill()
        server = start()
    assert [(message["role"], message["id"] == mid) for message in server.messages(sid)] == [
        ("user", True),
        ("assistant", False),
    ]
    assert server.messages(sid)[0]["siblings"] == [mid]
    assert (server.answer(sid)["status"], said(server.answer(sid))) == ("failed", "half ")


# ---- E3 ----


def test_an_error_before_the_first_byte(server: Served) -> None:
    """E3: nothing was said: a failed run with no parts, and the session goes on."""
    sid = server.session()
    answer = server.turn(sid, [{"fail": ["provider", "The key is wrong. Check the settings."]}])
    assert (answer["status"], answer["parts"]) == ("failed", [])
    assert answer["error"] == {"code": "provider", "message": "The key is wrong. Check the settings."}
    works(server, sid)


def test_an_error_before_anything_is_held(server: Served) -> None:
    """E3: there is no such agent: the run fails and says what to do."""
    sid = server.session(agent="nobody")
    answer = server.turn(sid, "hello")
    assert (answer["status"], answer["error"]["code"], answer["parts"]) == ("failed", "no-agent", [])
    assert "nobody" in answer["error"]["message"]
    server.call("PATCH", f"/api/sessions/{sid}", {"agent": "chat"}, 200)
    works(server, sid)


def test_a_script_that_cannot_be_read_is_an_exception_of_the_agent(server: Served) -> None:
    """E3: it raises before it has opened anything; the run fails, and nothing is left open."""
    sid = server.session()
    assert server.turn(sid, [{"no such": "action"}])["error"]["code"] == "internal"
    works(server, sid)


@pytest.mark.parametrize("how", ["refuse", "doubt"])
def test_the_save_itself_fails(server: Served, how: str) -> None:
    """E3: the store refuses the final save, or only says so: the next reader is shown the run as its journal ended."""
    sid = server.session()
    rid = server.stand(sid, [{"say": "whole"}, {"meet": "here"}])
    server.order(fail=["store", "_settle", how])
    server.order(open="here")
    assert server.events(rid)[-1].event == "run.complete"
    until(lambda: server.run(rid)["status"], lambda status: status == "complete")
    assert said(server.answer(sid)) == "whole"
    works(server, sid)


@pytest.mark.parametrize("how", ["refuse", "doubt"])
def test_a_commit_of_the_journal_fails_once(server: Served, how: str) -> None:
    """E3: an append that is refused, or done and reported as failed, is made up for: nothing is missing or doubled."""
    sid = server.session()
    rid = server.begin(sid, [{"say": "one "}, {"meet": "here"}, {"say": "two "}, {"call": "a"}, {"say": "three"}])
    with server.watch(rid) as stream:
        stream.until("text.delta")
        server.order(fail=["journal", "append", how])
        server.order(open="here")
        frames = stream.rest()
    assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
    assert shown(frames) == said(server.answer(sid)) == "one two three"
    assert frames == server.events(rid)
    works(server, sid)


def test_storage_that_gives_way_fails_the_run_with_all_that_was_shown(start: Start) -> None:
    """E1 E3: the journal goes and stays away: the stream ends, the upstream is let go of; when the journal is back the
    run has failed with that reason and with what had been shown."""
    server = start(engine={"storage_patience": 0.1, "final_save": 0.5, "fence_wait": 0.5})
    sid = server.session()
    rid = server.begin(sid, [{"say": "shown "}, {"meet": "here"}, {"say": "lost"}, {"hang": True}])
    with server.watch(rid) as stream:
        stream.until("text.delta")
        server.order(journal_away=True)
        server.order(open="here")
        assert [frame.event for frame in stream.rest()][-1] == "text.delta"
    until(lambda: server.order(upstreams=True), lambda open_now: open_now == 0)
    server.order(journal_away=False)
    run = until(lambda: server.run(rid), lambda run: run["status"] == "failed")
    assert run["error"]["code"] == "storage-unavailable"
    assert said(server.answer(sid)) == "shown "
    works(server, sid)


# ---- E4 ----


@pytest.mark.parametrize("script", [[], [{"step": 0}], [{"usage": [3, 0]}]], ids=["nothing", "a step", "only usage"])
def test_an_answer_without_anything_in_it_has_failed(server: Served, script: list[Any]) -> None:
    """E4: a stream that ends without text, reasoning or tool call is a failed run."""
    sid = server.session()
    answer = server.turn(sid, script)
    assert (answer["status"], answer["error"]["code"], answer["parts"]) == ("failed", "empty-answer", [])
    works(server, sid)


@pytest.mark.parametrize("script", [[{"think": "hm"}], [{"call": "a"}]], ids=["reasoning", "a tool"])
def test_an_answer_without_text_is_one(server: Served, script: list[Any]) -> None:
    """E4: reasoning alone, or a tool call alone, is not nothing."""
    assert server.turn(server.session(), script)["status"] == "complete"
