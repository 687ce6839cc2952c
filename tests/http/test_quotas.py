"""Limits on what one person, or whoever has a token, can pile up."""

import contextlib
import json
import sqlite3
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start

MAX_QUEUED = 100


def test_the_queue_of_a_session_is_limited(server: Served) -> None:
    """The message that is one too many is refused, whether it would wait or interrupt; a repeat of one is not."""
    sid = server.session()
    server.stand(sid, [{"say": "x"}, {"meet": "here"}])
    *_, last = [server.begin(sid, "more", key=f"key {n}") for n in range(MAX_QUEUED)]
    for how in ("queue", "interrupt"):
        refused = server.call("POST", f"/api/sessions/{sid}/runs", {"input": "more", "on_busy": how}, 429)
        assert refused["type"] == "quota-exceeded"
    assert len(server.look(sid)["queued_runs"]) == MAX_QUEUED
    assert server.send(sid, "more", key=f"key {MAX_QUEUED - 1}", expect=202)["run"]["id"] == last
    server.cancel(last)
    server.send(sid, "more")


def test_the_bytes_of_a_queue_are_limited(server: Served) -> None:
    """Every answer with the session has them: what would be too much is refused, also as a change of a queued message.
    Lists do without the parts of long messages."""
    sid = server.session(title="Some title")
    server.stand(sid, [{"say": "x"}, {"meet": "here"}])
    long = [{"type": "text", "text": "y" * 900_000}]
    short = server.begin(sid, "short")
    for _ in range(9):
        server.post(f"/api/sessions/{sid}/runs", {"input": long}, 202)
    for method, path in (("POST", f"/api/sessions/{sid}/runs"), ("PATCH", f"/api/runs/{short}")):
        refused = server.call(method, path, {"input": long}, 429)
        assert refused["type"] == "quota-exceeded"
        assert "cancel some" in refused["detail"]
    assert server.call("PATCH", f"/api/runs/{short}", {"input": "shorter"}, 200)["run"]["id"] == short
    whole = [item["message"]["parts"] for item in server.look(sid)["queued_runs"]]
    assert whole == [[{"type": "text", "text": "shorter"}], *[long] * 9]
    for query in ("", "?query=title"):
        answer = server.http.get(f"/api/sessions{query}")
        (session,) = answer.json()["items"]
        assert [item["message"]["parts"] for item in session["queued_runs"]] == [whole[0], *[[]] * 9]
        assert len(answer.content) < 50_000


def test_pages_are_limited_in_bytes(server: Served) -> None:
    """A page of messages or items ends where it would have more than 8 MB, and its cursor leads to the rest. What is
    outside the page is not read: here that is a damaged message."""
    sid = server.session()
    for _ in range(4):
        text = [{"type": "text", "text": "z" * 900_000}] * 5
        server.ended(server.post(f"/api/sessions/{sid}/runs", {"input": text}, 202)["run"]["id"])
    whole, seen, cursor = server.get(f"/api/sessions/{sid}/messages?limit=1")["next"], [], None
    assert whole is not None
    while True:
        answer = server.http.get(f"/api/sessions/{sid}/messages", params={"cursor": cursor} if cursor else {})
        assert len(answer.content) < 9_500_000
        seen += [message["id"] for message in answer.json()["items"]][::-1]
        cursor = answer.json()["next"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 8
    path, after, items = f"/v1/conversations/{sid}/items", None, []
    while True:
        page = server.get(path, params={"after": after} if after else {})
        items += [item["id"] for item in page["data"]]
        after = page["last_id"]
        assert len(json.dumps(page)) < 9_500_000
        if not page["has_more"]:
            break
    ascending = server.get(path, params={"order": "asc", "limit": 3})
    assert [item["id"] for item in ascending["data"]] == items[::-1][:3][: len(ascending["data"])]
    assert len(items) == len(set(items)) == 8
    with contextlib.closing(sqlite3.connect(server.data_dir / "holdfast.db")) as db, db:
        db.execute("UPDATE messages SET parts = 'damaged' WHERE id = ?", (seen[-1],))
    newest = server.get(path, params={"limit": 1})
    assert ([item["id"] for item in newest["data"]], newest["has_more"]) == (items[:1], True)
    assert server.get(f"{path}/{items[0]}")["id"] == items[0]
    assert seen[-1] not in server.complaints  # which would say that it is damaged, if it had been read
    assert server.call("GET", path, None, 400, params={"after": "msg_none"})["error"]["param"] == "after"


def test_the_queue_of_an_owner_is_limited(start: Start) -> None:
    """However many chats they are in: a run that would have to wait is refused."""
    server = start(engine={"max_runs": 0})
    rid = server.begin(server.session(), "first")
    server.terminate()
    with contextlib.closing(sqlite3.connect(server.data_dir / "holdfast.db")) as db, db:
        columns = [name for _, name, *_ in db.execute("PRAGMA table_info(runs)") if name != "id"]
        numbers = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        copies = f"INSERT INTO runs (id, {', '.join(columns)}) {numbers} SELECT 'run_' || i, {', '.join(columns)}"
        db.execute(f"{copies} FROM runs, n WHERE id = ?", (9999, rid))
    server = start(engine={"max_runs": 0})
    server.send(server.session(), "the last")
    refused = server.call("POST", f"/api/sessions/{server.session()}/runs", {"input": "one more"}, 429)
    assert (refused["type"], "10000" in refused["detail"]) == ("quota-exceeded", True)


def large(size: int) -> dict[str, Any]:
    return {"logit_bias": {"x": "y" * size}}


def test_settings_of_a_session_are_limited(server: Served) -> None:
    """They are read with every list: at creation, in a change and with a run."""
    sid = server.session(settings=large(60_000))
    for method, path, body in (
        ("POST", "/api/sessions", {"settings": large(70_000)}),
        ("PATCH", f"/api/sessions/{sid}", {"settings": large(70_000)}),
        ("POST", f"/api/sessions/{sid}/runs", {"input": "x", "settings": large(70_000)}),
    ):
        assert server.call(method, path, body, 422)["field"] == "settings"


def test_titles_are_limited_in_imports_too(server: Served) -> None:
    """As in the API: a list with them stays small."""
    server.events(server.send(server.session(title="t" * 500), "x")["run"]["id"])
    lines = server.http.get("/api/export").text
    headers = {"Content-Type": "application/x-ndjson"}
    assert server.http.post("/api/import", content=lines, headers=headers).status_code == 201
    longer = lines.replace("t" * 500, "t" * 501)
    answer = server.http.post("/api/import", content=longer, headers=headers)
    assert (answer.status_code, "title" in answer.text) == (422, True)


def test_uploads_leave_the_reserve_of_the_disk_alone(server: Served) -> None:
    """Open runs are saved in it: an upload that would use it up is refused, however small its first piece."""
    reserve = 64 * 1024 * 1024
    for free, size, status in ((0, 10, 507), (reserve + 100_000, 200_000, 507), (reserve + 1_000_000, 10, 201)):
        server.order(free=free)
        answer = server.http.post("/api/files", files={"file": ("a.txt", b"x" * size, "text/plain")})
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("declared", ["text/javascript", "text/css", "text/xml", "application/xml", "text/x-component"])
def test_an_upload_is_never_served_as_code(server: Served, declared: str) -> None:
    """Our own policy allows scripts and styles of this server, so no upload may be one."""
    answer = server.http.post("/api/files", files={"file": ("a.js", b"alert(1)", declared)})
    assert answer.status_code == 201
    served = server.http.get(f"/api/files/{answer.json()['id']}/content")
    assert served.headers["content-type"] == "text/plain; charset=utf-8"
    assert served.headers["x-content-type-options"] == "nosniff"
    assert served.content == b"alert(1)"


@pytest.mark.parametrize("declared", ["text/plain", "text/markdown", "text/csv", "application/json"])
def test_an_upload_without_code_keeps_its_type(server: Served, declared: str) -> None:
    """A type that no browser runs is served as it was stored."""
    answer = server.http.post("/api/files", files={"file": ("a", json.dumps([1]).encode(), declared)})
    assert server.http.get(f"/api/files/{answer.json()['id']}/content").headers["content-type"] == declared
