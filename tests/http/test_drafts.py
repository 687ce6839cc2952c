"""Drafts over HTTP: the unsent text of a chat, on all devices."""

from typing import Any

from holdfast.core.drafts import MAX_TEXT
from tests.http.client import Served
from tests.http.conftest import Start


def save(server: Served, chat: str, text: str, seen: int, expect: int = 200) -> Any:
    return server.call("PUT", f"/api/drafts/{chat}", {"text": text}, expect, headers={"If-Match": f'"{seen}"'})


def read(server: Served, chat: str) -> tuple[str, int]:
    found = server.get(f"/api/drafts/{chat}")
    return found["text"], found["version"]


def test_a_device_that_has_not_seen_the_newest_text_overwrites_nothing(server: Served) -> None:
    """U5: its text is refused with the version that is there; the same text again is not a new version."""
    sid = server.session()
    assert read(server, sid) == ("", 0)
    assert save(server, sid, "Half a", 0)["version"] == 1
    assert save(server, sid, "Half a thought", 1)["version"] == 2
    assert save(server, sid, "Half a thought", 2)["version"] == 2
    for stale in (0, 1):
        assert save(server, sid, "From a stale tab", stale, 412)["type"] == "version-mismatch"
    assert read(server, sid) == ("Half a thought", 2)
    server.call("PUT", f"/api/drafts/{sid}", {"text": "Whatever was there"}, 200)
    assert read(server, sid) == ("Whatever was there", 3)


def test_accepting_the_message_clears_its_draft(server: Served) -> None:
    """U5: in the same step; a save of the text that is still on its way is refused afterwards, even if it was the
    first."""
    sid = server.session()
    save(server, sid, "Hello", 0)
    body = {"input": [{"type": "text", "text": "Hello"}], "draft": {"session_id": sid, "version": 1}}
    run = server.post(f"/api/sessions/{sid}/runs", body, 202, headers={"Idempotency-Key": "k"})["run"]
    assert read(server, sid) == ("", 2)
    save(server, sid, "The next", 2)
    repeated = server.post(f"/api/sessions/{sid}/runs", body, 202, headers={"Idempotency-Key": "k"})["run"]
    assert repeated["id"] == run["id"]
    assert read(server, sid) == ("The next", 3)
    other = server.session()
    server.post(f"/api/sessions/{other}/runs", {"input": "Fast", "draft": {"session_id": other, "version": 0}}, 202)
    assert save(server, other, "Fas", 0, 412)["type"] == "version-mismatch"


def test_sending_leaves_the_draft_that_another_device_has_changed(server: Served) -> None:
    """Nor does it touch the draft of another chat, and a message that was no draft clears none."""
    sid, other = server.session(), server.session()
    save(server, sid, "One", 0)
    save(server, sid, "One and more", 1)
    save(server, other, "Elsewhere", 0)
    for draft in ({"session_id": sid, "version": 1}, {"session_id": other, "version": 1}, None):
        server.post(f"/api/sessions/{sid}/runs", {"input": "One", "draft": draft}, 202)
    assert read(server, sid) == ("One and more", 2)
    assert read(server, other) == ("Elsewhere", 1)


def test_the_first_message_of_a_chat_clears_the_draft_of_a_new_chat(server: Served) -> None:
    """It was typed before the chat had an id."""
    seen = read(server, "new")[1]
    version = save(server, "new", "A new subject", seen)["version"]
    sid = server.session()
    draft = {"session_id": "new", "version": version}
    server.post(f"/api/sessions/{sid}/runs", {"input": "A new subject", "draft": draft}, 202)
    assert read(server, "new") == ("", version + 1)


def test_text_for_an_active_answer_clears_its_draft(server: Served) -> None:
    """Steering accepts a message too."""
    sid = server.session()
    rid = server.begin(sid, [{"say": "one"}, {"hang": True}])
    save(server, sid, "Shorter", 0)
    body = {"text": "Shorter", "draft": {"session_id": sid, "version": 1}}
    server.post(f"/api/runs/{rid}/steer", body, 202)
    assert read(server, sid) == ("", 2)


def test_a_refused_message_keeps_its_draft(server: Served) -> None:
    """Clearing is part of what is accepted."""
    sid = server.session()
    server.begin(sid, [{"say": "one"}, {"hang": True}])
    save(server, sid, "Busy?", 0)
    body = {"input": "Busy?", "on_busy": "reject", "draft": {"session_id": sid, "version": 1}}
    server.post(f"/api/sessions/{sid}/runs", body, 409)
    assert read(server, sid) == ("Busy?", 1)


def test_drafts_have_limits_and_go_with_their_chat(server: Served) -> None:
    """A text that is too long is refused, and a chat that is unknown or deleted has no draft."""
    sid = server.session()
    save(server, sid, "x" * MAX_TEXT, 0)
    assert save(server, sid, "x" * (MAX_TEXT + 1), 1, 422)["field"] == "text"
    server.call("DELETE", f"/api/sessions/{sid}", expect=204)
    for chat in (sid, "ses_unknown", "edit"):
        assert server.call("GET", f"/api/drafts/{chat}", expect=404)["type"] == "not-found"
        assert save(server, chat, "x", 0, 404)["type"] == "not-found"


def test_drafts_survive_a_crash_and_leave_with_no_export(start: Start) -> None:
    """U5: after `kill -9` the text is there; an export, a share and a fork do not have it."""
    server = start()
    sid = server.session()
    server.ended(server.begin(sid, [{"say": "done"}]))
    save(server, sid, "Between us", 0)
    server.kill()
    server = start()
    assert read(server, sid) == ("Between us", 1)
    for path in (f"/api/sessions/{sid}/export", "/api/export", f"/api/sessions/{sid}/export?format=html"):
        assert b"Between us" not in server.http.get(path).content
    link = server.post(f"/api/sessions/{sid}/shares", {}, 201)["path"]
    assert b"Between us" not in server.http.get(link).content
    head = server.get(f"/api/sessions/{sid}")["head"]
    fork = server.post(f"/api/sessions/{sid}/fork", {"message_id": head}, 201)["id"]
    assert read(server, fork) == ("", 0)
