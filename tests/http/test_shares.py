"""Share links over HTTP: who can open them, what the responses say, and that nothing leaks."""

import http.client
import json
import re
from typing import Any

import httpx
import pytest

from holdfast.engine.shares import MAX_CREATING
from tests.http.client import Served
from tests.http.conftest import Start

PASSWORD = "correct horse"
PAGE = {"Accept": "text/html,*/*"}


def shared(server: Served, sid: str, **fields: Any) -> Any:
    return server.post(f"/api/sessions/{sid}/shares", fields, 201)


def chat(server: Served, text: str = "The tide is high.", **fields: Any) -> str:
    sid = server.session(**fields)
    server.turn(sid, [{"say": text}])
    return sid


def stranger(server: Served, method: str, path: str) -> httpx.Response:
    """A request without any credentials, as a browser that follows a link from elsewhere sends it."""
    headers = {**PAGE, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    return httpx.request(method, f"{server.url}{path}", headers=headers)


def test_a_link_is_opened_without_a_login(start: Start) -> None:
    """By GET and HEAD alone, on a server with a password; nothing else of the server is."""
    server = start(password=PASSWORD)
    server.post("/api/login", {"password": PASSWORD}, 204)
    made = shared(server, chat(server, title="Tides"))
    page = stranger(server, "GET", made["path"])
    assert page.status_code == 200
    assert "<title>Tides</title>" in page.text
    assert "The tide is high." in page.text
    head = stranger(server, "HEAD", made["path"])
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(page.content)) == str(made["size"])
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert stranger(server, method, made["path"]).status_code in (401, 403, 415)
    assert stranger(server, "OPTIONS", made["path"]).status_code == 401
    for path in ("/api/shares", f"/api/sessions/{made['session_id']}", "/share", "/share/../api/shares"):
        assert stranger(server, "GET", path).status_code in (303, 401, 404)


def test_a_server_without_a_password_serves_links_to_other_accounts(start: Start) -> None:
    """Of this machine: the link is what they were given. Through a proxy or another name, nobody is served."""
    server = start()
    path = shared(server, chat(server))["path"]
    assert server.http.get(path).status_code == 200
    assert server.http.get(path, headers={"Host": "evil.example"}).status_code == 421
    assert server.http.get(path, headers={"X-Forwarded-For": "10.0.0.1"}).status_code == 403


@pytest.mark.parametrize("kind", ["text", "recording"])
def test_the_page_runs_and_stores_nothing(server: Served, kind: str) -> None:
    """No scripts, no origin, no frames, no cache, no referrer, no search engines; images only as part of the page."""
    sid = chat(server, '<script>alert(1)</script> <img src="https://evil.example/x.png">')
    page = server.http.get(shared(server, sid, kind=kind, tools=True, reasoning=True, files=True)["path"])
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "noindex" in page.headers["x-robots-tag"]
    assert page.headers["x-content-type-options"] == "nosniff"
    policy = dict(each.strip().partition(" ")[::2] for each in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["img-src"] == "data:"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "allow-scripts" not in policy["sandbox"]
    assert "allow-same-origin" not in policy["sandbox"]
    assert "script-src" not in policy
    assert not re.search(r"<(script|iframe|link)|(src|href)=\"/", page.text)
    assert page.headers["content-disposition"].startswith("inline")
    assert "set-cookie" not in page.headers


def test_links_that_do_not_work_are_answered_alike(server: Served) -> None:
    """Unknown, revoked, and of a deleted or cleared chat: the same 404 page, byte for byte."""
    revoked, deleted, cleared = (shared(server, chat(server)) for _ in range(3))
    server.call("DELETE", f"/api/shares/{revoked['id']}", expect=204)
    server.call("DELETE", f"/api/sessions/{deleted['session_id']}", expect=204)
    server.post(f"/api/sessions/{cleared['session_id']}/clear")
    paths = [each["path"] for each in (revoked, deleted, cleared)]
    paths += ["/share/unknown", "/share/" + "x" * 4000, "/share/%00%ff", revoked["path"][:-1]]
    answers = [server.http.get(path, headers=PAGE) for path in paths]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert "Link not available" in answers[0].text
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store"
        assert "noindex" in answer.headers["x-robots-tag"]
    assert server.get("/api/shares")["items"] == []
    server.refused("not-found", "DELETE", f"/api/shares/{revoked['id']}")


def test_a_link_whose_file_is_lost_is_not_available(start: Start) -> None:
    """E3: the page says so, as for links that have ended, and the log has no exception."""
    server = start()
    path = shared(server, chat(server))["path"]
    for file in (server.data_dir / "files").rglob("*"):
        if file.is_file():
            file.unlink()
    assert [server.http.request(method, path, headers=PAGE).status_code for method in ("GET", "HEAD")] == [404, 404]
    assert "Exception" not in server.complaints


def test_large_shares_delay_no_others(start: Start) -> None:
    """E3, L6: others are created meanwhile, and one whose client has left ends."""
    server = start()
    sid = chat(server)
    server.order(hold=["journal", "read"])
    body = json.dumps({"kind": "recording"})
    clients = [http.client.HTTPConnection(*server.address) for _ in range(MAX_CREATING)]
    for client in clients:
        client.request("POST", f"/api/sessions/{sid}/shares", body, {"Content-Type": "application/json"})
        server.order(held=["journal", "read"])
        if client is clients[0]:
            shared(server, sid)
    for client in clients:
        client.close()
    shared(server, sid)
    server.order(release=["journal", "read"])
    shared(server, sid, kind="recording")
    assert [share["kind"] for share in server.get("/api/shares")["items"]] == ["recording", "text", "text"]


def test_links_are_listed_by_page(server: Served) -> None:
    """Newest first, without their tokens."""
    sid = chat(server, title="Tides")
    made = [shared(server, sid, expires_in_days=days) for days in (1, 7, 30, None)]
    first = server.get("/api/shares?limit=3")
    rest = server.get(f"/api/shares?limit=3&cursor={first['next']}")
    items = first["items"] + rest["items"]
    assert [item["id"] for item in items] == [each["id"] for each in reversed(made)]
    assert rest["next"] is None
    assert not {"path", "token", "token_digest", "file_id"} & items[0].keys()
    assert [item["expires_at"] is None for item in items] == [True, False, False, False]
    assert {(item["title"], item["kind"], item["session_id"]) for item in items} == {("Tides", "text", sid)}
    assert items[-1]["last_opened_at"] is None
    server.http.head(made[0]["path"])
    assert server.get("/api/shares")["items"][-1]["last_opened_at"] is None
    server.http.get(made[0]["path"])
    assert server.get("/api/shares")["items"][-1]["last_opened_at"] is not None
    assert len({each["path"] for each in made}) == 4
    assert all(len(each["path"].removeprefix("/share/")) >= 43 for each in made)  # 256 bits


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "video"},
        {"expires_in_days": 2},
        {"expires_in_days": "7"},
        {"run_id": "run_1"},
        {"tools": "yes"},
        {"unknown": 1},
    ],
)
def test_a_wrong_request_shares_nothing(server: Served, fields: dict[str, Any]) -> None:
    sid = chat(server)
    server.refused("invalid", "POST", f"/api/sessions/{sid}/shares", fields)
    server.refused("not-found", "POST", "/api/sessions/ses_unknown/shares", {})
    server.refused("not-allowed", "POST", f"/api/sessions/{server.session()}/shares", {})
    assert server.get("/api/shares")["items"] == []


def test_links_outlive_the_server_and_stay_below_its_path(start: Start) -> None:
    """After `kill -9` the link shows the same bytes, below the path that a proxy publishes and where it removes it."""
    server = start()
    made = shared(server, chat(server), kind="recording", expires_in_days=None)
    before = server.http.get(made["path"]).content
    server.kill()
    server = start(root_path="/holdfast", password=PASSWORD)
    direct = server.url.removesuffix("/holdfast")
    assert httpx.get(f"{direct}/holdfast{made['path']}").content == before
    assert httpx.get(f"{direct}{made['path']}").content == before
    server.post("/api/login", {"password": PASSWORD}, 204)
    assert shared(server, made["session_id"])["root_path"] == "/holdfast"


def test_tokens_are_neither_stored_nor_logged(start: Start) -> None:
    """Whoever reads the database or the log cannot open the links."""
    server = start(log_level="info")
    token = shared(server, chat(server))["path"].removeprefix("/share/")
    assert server.http.get(f"/share/{token}").status_code == 200
    assert "GET /share/…" in server.complaints
    assert "chat shared" in server.complaints
    assert token not in server.complaints
    server.kill()
    for path in server.data_dir.rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes(), path


# ------------------------------------------------------------------------------------------------ edited answers


def edit(server: Served, sid: str, mid: str, text: str, expect: int = 201, key: str | None = None) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return server.post(f"/api/sessions/{sid}/edit-answer", {"message_id": mid, "text": text}, expect, headers=headers)


def test_an_edited_answer_is_a_branch(server: Served) -> None:
    """The original stays beside it, the head moves, and the next turn follows the edited one."""
    sid = server.session()
    original = server.turn(sid, [{"say": "Six."}])
    made = edit(server, sid, original["id"], "Seven.")
    assert (made["reason"], made["status"], made["run_id"]) == ("edited", "complete", None)
    assert made["parts"] == [{"type": "text", "text": "Seven."}]
    assert made["siblings"] == [original["id"], made["id"]]
    assert server.look(sid)["head"] == made["id"]
    server.turn(sid, [{"say": "Later."}])
    assert [part["text"] for message in server.messages(sid)[1::2] for part in message["parts"]] == ["Seven.", "Later."]
    server.call("PATCH", f"/api/sessions/{sid}", {"head": original["id"]}, 200)
    assert server.messages(sid)[-1]["parts"] == original["parts"]


def test_an_edit_is_made_once_per_key(server: Served) -> None:
    """A repeat returns the message without moving the head again; another text with the same key is refused."""
    sid = server.session()
    original = server.turn(sid, [{"say": "Six."}])
    made = edit(server, sid, original["id"], "Seven.", key="k")
    later = server.turn(sid, [{"say": "Later."}])
    again = edit(server, sid, original["id"], "Seven.", key="k")
    assert (again["id"], server.look(sid)["head"]) == (made["id"], later["id"])
    assert edit(server, sid, original["id"], "Eight.", 422, key="k")["type"] == "invalid"
    assert edit(server, sid, original["id"], "Seven.", key="l")["id"] != made["id"]


def test_an_edit_cancels_the_run_that_it_hides(server: Served) -> None:
    """As every move of the head does; what was written of its answer stays on the other branch."""
    sid = server.session()
    original = server.turn(sid, [{"say": "Six."}])
    rid = server.stand(sid, [{"say": "partial "}, {"meet": "here"}, {"hang": True}])
    streaming = server.messages(sid)[-1]["id"]
    assert edit(server, sid, streaming, "no", 409)["type"] == "not-allowed"
    edit(server, sid, original["id"], "Seven.")
    assert server.ended(rid)["status"] == "cancelled"
    assert server.get(f"/api/sessions/{sid}/messages")["items"][-1]["parts"][0]["text"] == "Seven."


def test_only_answers_are_edited_this_way(server: Served) -> None:
    """A user's message is edited by sending it again; a text must have words; a version must be the session's."""
    sid = server.session()
    original = server.turn(sid, [{"say": "Six."}])
    question = server.messages(sid)[0]["id"]
    assert edit(server, sid, question, "x", 409)["type"] == "not-allowed"
    assert edit(server, sid, "msg_unknown", "x", 404)["type"] == "not-found"
    assert edit(server, sid, original["id"], " \n", 422)["type"] == "invalid"
    assert edit(server, server.session(), original["id"], "x", 404)["type"] == "not-found"
    body = {"message_id": original["id"], "text": "x"}
    path = f"/api/sessions/{sid}/edit-answer"
    server.refused("version-mismatch", "POST", path, body, headers={"If-Match": '"1"'})
    assert len(server.messages(sid)) == 2
