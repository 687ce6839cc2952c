"""Section A over HTTP: what was accepted is stored, once, and a busy session does what the caller asked for."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said, until

BUSY = [{"say": "half "}, {"meet": "here"}, {"say": "whole"}]
INTERRUPTED = [{"say": "half "}, {"meet": "here"}, {"hang": True}]


def busy(server: Served, script: Any = BUSY, **fields: Any) -> tuple[str, str]:
    """A session with a run that stands at its gate."""
    sid = server.session(**fields)
    rid = server.stand(sid, script)
    return sid, rid


def spoken(server: Served, sid: str) -> list[str]:
    """The answers of the shown branch."""
    return [said(message) for message in server.messages(sid) if message["role"] == "assistant"]


# ---- A1 ----


def test_an_accepted_message_and_its_attachment_survive_a_kill(start: Start) -> None:
    """A1: killed the instant the response arrives: message, time, key and attachment are stored as it said."""
    server = start()
    content = b"first line\nsecond line\n"
    file = server.post("/api/files", expect=201, files={"file": ("notes.txt", content, "text/plain")})
    sid = server.session(title="kept")
    parts = [{"type": "text", "text": "look at this"}, {"type": "file", "file_id": file["id"]}]
    body = {"input": parts}
    taken = server.post(f"/api/sessions/{sid}/runs", body, 202, headers={"Idempotency-Key": "k"})
    server.kill()
    server = start()
    question, answer = server.messages(sid)
    assert question == taken["message"]
    assert [part["type"] for part in question["parts"]] == ["text", "file"]
    assert (question["parts"][1]["name"], question["parts"][1]["size"]) == ("notes.txt", len(content))
    assert question["idempotency_key"] == "k"
    assert server.http.get(f"/api/files/{file['id']}/content").content == content
    assert (answer["id"], answer["run_id"]) == (taken["run"]["message_id"], taken["run"]["id"])
    assert server.look(sid)["title"] == "kept"
    again = server.post(f"/api/sessions/{sid}/runs", body, 202, headers={"Idempotency-Key": "k"})
    assert again["run"]["id"] == taken["run"]["id"]


# ---- A2 ----


CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "runs": ("/api/sessions/{sid}/runs", {"input": "hello"}),
    "continue": ("/api/runs/{rid}/continue", {}),
    "retry": ("/api/sessions/{sid}/retry", {"message_id": "{mid}"}),
    "edit": ("/api/sessions/{sid}/edit", {"message_id": "{mid}", "input": "again"}),
}


def made(server: Served, call: str) -> tuple[str, str, dict[str, str]]:
    """A session with an interrupted turn, and a call that makes a run there."""
    sid, rid = busy(server, INTERRUPTED)
    server.cancel(rid)
    server.order(open="here")
    path, body = CALLS[call]
    ids = {"sid": sid, "rid": rid, "mid": server.messages(sid)[0]["id"]}
    return sid, path.format(**ids), {name: value.format(**ids) for name, value in body.items()}


@pytest.mark.parametrize("call", CALLS)
def test_a_repeated_call_with_its_key_is_one_run(server: Served, call: str) -> None:
    """A2: sent by several clients at once and again after its end, a key makes one run, and all get that run; another
    body, or another call, with the same key is refused with that run."""
    sid, path, body = made(server, call)
    before = len(server.get("/api/runs", params={"session": sid})["items"])
    headers = {"Idempotency-Key": "twice"}

    def send(_: int) -> Any:
        return server.post(path, body, 202, headers=headers)

    with ThreadPoolExecutor(5) as clicks:
        taken = list(clicks.map(send, range(5)))
    new = taken[0]["run"]["id"]
    until(lambda: server.look(sid)["active_run"], lambda active: active == new or active is None)
    server.cancel(new)
    taken.append(send(0))
    assert {one["run"]["id"] for one in taken} == {new}
    assert {one["message"]["id"] for one in taken} == {taken[0]["message"]["id"]}
    assert taken[-1]["run"]["status"] in ("complete", "cancelled")  # as it is now
    for where, other in ((path, {**body, "model": "other"}), (f"/api/sessions/{sid}/runs", {"input": "?"})):
        assert server.refused("idempotency-key-reused", "POST", where, other, headers=headers)["run_id"] == new
    assert len(server.get("/api/runs", params={"session": sid})["items"]) == before + 1
    questions = [message["id"] for message in server.messages(sid) if message["role"] == "user"]
    assert len(questions) == len(set(questions)) == (2 if call == "runs" else 1)
    assert server.begin(server.session(), "?", key="twice") != new  # keys are a session's own


def test_a_repeated_session_creation_with_its_key_is_one_session(start: Start) -> None:
    """A2: a key creates one session, for several clients at once, after a kill and after its first turn; a repeat
    returns it as it is now."""
    server = start()
    headers = {"Idempotency-Key": "once"}

    def create(_: int = 0) -> Any:
        return server.post("/api/sessions", {"title": "first"}, 201, headers=headers)

    with ThreadPoolExecutor(5) as clicks:
        (sid,) = {made["id"] for made in clicks.map(create, range(5))}
    server.call("PATCH", f"/api/sessions/{sid}", {"title": "renamed"}, 200)
    rid = server.begin(sid, BUSY)
    server.order(reached="here")
    assert (create()["title"], create()["active_run"]) == ("renamed", rid)
    server.kill()
    server = start()
    assert create()["id"] == sid
    assert len(server.get("/api/sessions")["items"]) == 1
    assert server.post("/api/sessions", {}, 201, headers={"Idempotency-Key": "other"})["id"] != sid


def test_a_repeat_of_an_attached_send_only_watches(server: Served) -> None:
    """A2: the second stream of the same key is a plain subscription: leaving it stops nothing."""
    sid = server.session()
    with server.attached(sid, BUSY, key="k") as first:
        first.until("text.delta")
        with server.attached(sid, BUSY, key="k") as second:
            assert second.until("text.delta").raw == first.frames[-1].raw
        assert server.order(upstreams=True) == 1
        server.order(open="here")
        assert first.rest()[-1].event == "run.complete"
    assert spoken(server, sid) == ["half whole"]


# ---- A3 ----


def test_queued_turns_run_afterwards_in_order(server: Served) -> None:
    """A3: three sends while the session is busy wait, are shown as waiting, and run one after the other."""
    sid, rid = busy(server)
    rids = [server.begin(sid, text) for text in ("one", "two", "three")]
    session = server.look(sid)
    assert session["active_run"] == rid
    assert [(item["run"]["id"], said(item["message"])) for item in session["queued_runs"]] == list(
        zip(rids, ("one", "two", "three"), strict=True)
    )
    assert server.listed(sid)["queued_runs"] == session["queued_runs"]
    assert len(server.messages(sid)) == 2
    server.order(open="here")
    ended = [server.ended(one) for one in (rid, *rids)]
    assert spoken(server, sid) == ["half whole", "one", "two", "three"]
    times = [(run["started_at"], run["ended_at"]) for run in ended]
    assert all(before[1] <= after[0] for before, after in pairwise(times))


def test_a_busy_session_rejects_with_the_active_run(server: Served) -> None:
    """A3: `reject` is a 409 that names the run in the way, and stores nothing."""
    sid, rid = busy(server)
    refused = server.refused("session-busy", "POST", f"/api/sessions/{sid}/runs", {"input": "?", "on_busy": "reject"})
    assert refused["active_run"] == rid
    assert server.look(sid)["queued_runs"] == []
    assert [run["id"] for run in server.get("/api/runs")["items"]] == [rid]


def test_interrupt_keeps_the_partial_and_goes_before_the_queue(server: Served) -> None:
    """A3: the active run is cancelled with what it had said, the new one runs next, and the queue after it."""
    sid, rid = busy(server)
    queued = server.begin(sid, "queued")
    urgent = server.begin(sid, "urgent", on_busy="interrupt")
    server.ended(urgent)
    server.ended(queued)
    run = server.run(rid)
    assert (run["status"], run["reason"]) == ("cancelled", "superseded")
    assert spoken(server, sid) == ["half ", "urgent", "queued"]
    assert server.order(upstreams=True) == 0


def test_a_queued_turn_can_be_edited_until_it_begins(server: Served) -> None:
    """A3: what is answered is the text as it was last edited; once it has begun there is nothing to edit."""
    sid, rid = busy(server)
    queued = server.begin(sid, "typo")
    path = f"/api/runs/{queued}"
    edited = server.call("PATCH", path, {"input": "right"}, 200)
    assert (said(edited["message"]), edited["run"]["id"]) == ("right", queued)
    assert [said(item["message"]) for item in server.look(sid)["queued_runs"]] == ["right"]
    server.refused("not-found", "PATCH", path, {"input": [{"type": "file", "file_id": "file_none"}]})
    server.refused("not-allowed", "PATCH", f"/api/runs/{rid}", {"input": "too late"})
    server.order(open="here")
    server.ended(queued)
    assert [said(message) for message in server.messages(sid)][2:] == ["right", "right"]
    server.refused("not-allowed", "PATCH", path, {"input": "too late"})
