"""Notifications over HTTP, with a real push service."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.push.service import PushServiceServer, verify_authorization


@pytest.fixture
def push_service() -> Iterator[PushServiceServer]:
    with PushServiceServer().running() as service:
        yield service


@pytest.fixture
def served(start: Start, push_service: PushServiceServer) -> Served:
    return start(push_origins=[push_service.origin])


def subscribe(served: Served, service: PushServiceServer, name: str = "phone", **choices: bool) -> Any:
    return served.post("/api/push/subscriptions", {**service.subscribe(name), **choices}, expect=200)


def test_an_answer_is_pushed_to_the_browser(served: Served, push_service: PushServiceServer) -> None:
    """Encrypted for it, signed with the key that it subscribed with; the device shows when that was."""
    key = served.get("/api/push/key")["public_key"]
    device = subscribe(served, push_service)
    assert (device["service"], device["succeeded_at"], device["failure"]) == ("127.0.0.1", None, None)
    sid = served.session(title="High water")
    run = served.ended(served.begin(sid, [{"say": "done"}]))
    (received,) = push_service.wait(1)
    assert received.content == {"kind": "done", "tag": run["id"], "session": sid, "title": "High water"}
    assert verify_authorization(received.headers["Authorization"], push_service.origin)[0] == key
    while (found := served.get("/api/push/subscriptions")["items"][0])["succeeded_at"] is None:
        pass
    assert found["id"] == device["id"]
    assert "endpoint" not in found


def test_devices_choose_what_they_are_told(served: Served, push_service: PushServiceServer) -> None:
    """By kind, and with the title or without; a device that is removed is told nothing more."""
    phone = subscribe(served, push_service, done=False, show_title=False)
    desk = subscribe(served, push_service, "desk", failed=False)
    sid = served.session(title="Private")
    rid = served.begin(sid, [{"call": "c1", "name": "shell", "asks": True}, {"say": "done"}])
    asked = {each.path: each.content for each in push_service.wait(2)}
    assert {content["kind"] for content in asked.values()} == {"approval"}
    assert {path: content["title"] for path, content in asked.items()} == {"/push/phone": "", "/push/desk": "Private"}
    assert not any("asks" in content for content in asked.values())
    assert served.get(f"/api/sessions/{sid}")["waits_for"] == "approval"
    aid = asked["/push/desk"]["tag"]
    served.post(f"/api/runs/{rid}/approvals/{aid}", {"decision": "once"}, expect=200)
    assert push_service.wait(3)[2].path == "/push/desk"
    changed = served.call("PATCH", f"/api/push/subscriptions/{phone['id']}", {"done": True, "show_title": True}, 200)
    assert {name: changed[name] for name in ("done", "failed", "approval", "show_title")} == {
        "done": True,
        "failed": True,
        "approval": True,
        "show_title": True,
    }
    served.call("DELETE", f"/api/push/subscriptions/{desk['id']}", expect=204)
    served.ended(served.begin(sid, [{"say": "again"}]))
    last = push_service.wait(4)[3]
    assert (last.path, last.content["title"]) == ("/push/phone", "Private")
    assert [each["id"] for each in served.get("/api/push/subscriptions")["items"]] == [phone["id"]]


def test_a_question_of_the_model_says_that_it_asks(served: Served, push_service: PushServiceServer) -> None:
    """U7: it is told to those who want to know of approvals, and is none."""
    subscribe(served, push_service)
    asked = {"question": "Which port?", "options": ["80"]}
    sid = served.session()
    rid = served.begin(sid, [{"call": "q", "name": "ask_user", "args": asked, "asks_user": True}, {"say": "done"}])
    (received,) = push_service.wait(1)
    assert (received.content["kind"], received.content["asks"]) == ("approval", True)
    assert served.get(f"/api/sessions/{sid}")["waits_for"] == "answer"
    assert served.get(f"/api/runs/{rid}")["waits_for"] == "answer"
    assert [run["waits_for"] for run in served.get("/api/runs?status=waiting")["items"]] == ["answer"]
    aid = received.content["tag"]
    served.post(f"/api/runs/{rid}/inputs/{aid}", {"action": "accept", "content": {"answer": "80"}}, expect=200)
    served.ended(rid)
    assert served.get(f"/api/sessions/{sid}")["waits_for"] is None
    assert served.get(f"/api/runs/{rid}")["waits_for"] is None


def test_a_test_notification_says_whether_it_was_sent(served: Served, push_service: PushServiceServer) -> None:
    """With the reason of the push service; a device that is gone is removed."""
    device = subscribe(served, push_service)
    path = f"/api/push/subscriptions/{device['id']}/test"
    assert served.post(path, {}, expect=200) == {"sent": True, "reason": None}
    push_service.answers = [(403, {}, b"wrong key"), (410, {}, b"")]
    refused = served.post(path, {}, expect=200)
    assert refused == {"sent": False, "reason": "The push service answered 403: wrong key"}
    assert served.get("/api/push/subscriptions")["items"][0]["failure"] == refused["reason"]
    assert served.post(path, {}, expect=200)["sent"] is False
    assert served.get("/api/push/subscriptions")["items"] == []
    served.post(path, {}, expect=404)


def test_an_address_of_this_network_cannot_be_subscribed(shared: Served, push_service: PushServiceServer) -> None:
    """Without `push_origins`, endpoints must use HTTPS; broken keys and unknown fields are refused too."""
    told = push_service.subscribe()
    for body, field in (
        (told, "endpoint"),
        ({**told, "endpoint": "https://push.example/1", "keys": {"p256dh": "x", "auth": "y"}}, "keys"),
        ({**told, "other": 1}, "other"),
    ):
        problem = shared.post("/api/push/subscriptions", body, expect=422)
        assert field in problem["detail"]
    assert shared.get("/api/push/subscriptions")["items"] == []


def test_the_key_and_the_devices_survive_a_restart(start: Start, push_service: PushServiceServer) -> None:
    """A message that could not be sent before is sent after; killed in between, it is not lost."""
    served = start(push_origins=[push_service.origin], engine={"push_claim": 0.1})
    key = served.get("/api/push/key")["public_key"]
    device = subscribe(served, push_service)
    sid = served.session()
    rid = served.begin(sid, [{"say": "begun"}, {"hang": True}])
    served.kill()
    again = start(push_origins=[push_service.origin], engine={"push_claim": 0.1})
    assert push_service.wait(1)[0].content["tag"] == rid
    assert push_service.received[0].content["kind"] == "failed"
    assert again.get("/api/push/key")["public_key"] == key
    assert [each["id"] for each in again.get("/api/push/subscriptions")["items"]] == [device["id"]]


def test_a_device_ends_with_its_login(start: Start, push_service: PushServiceServer) -> None:
    """Whoever logs a lost phone out also ends its notifications."""
    served = start(push_origins=[push_service.origin], password="secret")
    served.http.post("/api/login", json={"password": "secret"}).raise_for_status()
    subscribe(served, push_service)
    served.ended(served.begin(served.session(), [{"say": "one"}]))
    push_service.wait(1)
    served.http.post("/api/logout", json={}).raise_for_status()
    served.http.post("/api/login", json={"password": "secret"}).raise_for_status()
    served.ended(served.begin(served.session(), [{"say": "two"}]))
    while served.get("/api/push/subscriptions")["items"]:
        pass
    assert len(push_service.received) == 1
