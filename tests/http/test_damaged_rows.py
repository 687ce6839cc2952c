"""Every call that reads answers although rows are damaged: those calls are taken from the API's own description."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.contract.test_damaged_rows import COLUMNS, GARBAGE
from tests.http.client import Served
from tests.http.conftest import Start

STREAMS = ("/api/events", "/api/runs/{rid}/events")
ABSENT = ("/api/agents", "/api/mcp", "/api/models", "/api/providers", "/v1/models", "/api/setup", "/api/tools")
"""Of services that this server has not got."""


TRIED = (1, 4, 10, 11, 12, 13)
"""Cut off, a number, numbers, an object, parts, and nested too deep. The store is tested with all of them."""


def filled(server: Served, name: str) -> dict[str, str]:
    """A project and a chat in it with everything that is listed; the names in paths that stand for them."""
    pid = server.post("/api/projects", {"name": name, "temperature": 0.5}, 201)["id"]
    sid = server.session(title=f"boat {name}", tags=["sea"], project=name, settings={"a": 1})
    rid = server.begin(sid, [{"say": f"boat {name}"}, {"call": "c1"}, {"usage": [1, 2]}, {"fail": ["provider", "no"]}])
    server.ended(rid)
    aid = server.begin(sid, [{"say": "b"}, {"call": "c1", "asks": True}])
    server.post(f"/api/sessions/{sid}/shares", {}, 201)
    fields = {"model": "agent:chat", "input": f"boat {name}", "store": True}
    response = server.post("/v1/responses", fields)["id"]
    completion = {"model": "agent:chat", "messages": [{"role": "user", "content": "hi"}], "store": True}
    chat = server.post("/v1/chat/completions", completion)["id"]
    with server.watch(aid) as stream:
        stream.until("approval.requested")
    return {
        "sid": sid,
        "rid": rid,
        "pid": pid,
        "response_id": response,
        "completion_id": chat,
        "conversation_id": server.messages(sid)[-1]["session_id"],
    }


def calls(server: Served, names: dict[str, str]) -> list[str]:
    """The path of every call that reads, as far as the names fill it in."""
    paths = server.get("/openapi.json")["paths"]
    found = [path for path, methods in paths.items() if "get" in methods and path not in STREAMS]
    for name, value in names.items():
        found = [path.replace(f"{{{name}}}", value) for path in found]
    return sorted(path for path in found if "{" not in path and not path.startswith(ABSENT))


def test_damaged_rows_break_no_call(start: Start) -> None:
    """Not what lists them beside others, not what shows the damaged chat, run or project itself."""
    server = start()
    hurt, fine = filled(server, "hurt"), filled(server, "fine")
    whole = {path: server.http.get(path) for names in (hurt, fine) for path in calls(server, names)}
    good = {path: answer for path, answer in whole.items() if answer.is_success}
    assert len(good) > 40, sorted(whole)
    shown = [f"/api/sessions/{fine['sid']}", f"/api/sessions/{fine['sid']}/messages", f"/api/projects/{fine['pid']}"]
    file = server.data_dir / "holdfast.db"
    for garbage in (GARBAGE[n] for n in TRIED):
        with closing(sqlite3.connect(file)) as db, db:
            of_hurt = {"sessions": hurt["sid"], "projects": hurt["pid"]}
            for table, columns in COLUMNS.items():
                damage = ", ".join(f"{column} = ?" for column in columns)
                values: list[Any] = [garbage] * len(columns)
                if table == "settings":
                    db.execute("INSERT OR REPLACE INTO settings VALUES ('local', 'hurt', ?)", values)
                elif table in of_hurt:
                    db.execute(f"UPDATE {table} SET {damage} WHERE id = ?", [*values, of_hurt[table]])
                else:
                    db.execute(f"UPDATE {table} SET {damage} WHERE session_id = ?", [*values, hurt["sid"]])
        for path in good:
            answer = server.http.get(path)
            assert answer.is_success, (garbage[:40], path, answer.status_code, answer.text[:300])
        for path in ("/api/sessions?query=boat", "/api/sessions?project=hurt", "/api/export?format=jsonl"):
            assert server.http.get(path).is_success, (garbage[:40], path)
        listed = {item["id"] for item in server.get("/api/sessions")["items"]}
        assert {hurt["sid"], fine["sid"]} <= listed
    for path in shown:
        assert server.http.get(path).json() == good[path].json()
    assert server.call("PATCH", f"/api/sessions/{hurt['sid']}", {"title": "mended"}, 200)["title"] == "mended"
    server.call("DELETE", f"/api/sessions/{hurt['sid']}", expect=204)


@pytest.mark.parametrize("table", ["messages", "sessions"])
def test_a_chat_with_a_damaged_row_goes_on(server: Served, table: str) -> None:
    """What cannot be read says so, and the next turn is answered."""
    sid = server.session(title="boat")
    server.turn(sid, "first")
    with closing(sqlite3.connect(server.data_dir / "holdfast.db")) as db, db:
        column = "parts" if table == "messages" else "settings"
        db.execute(
            f"UPDATE {table} SET {column} = '[{{' WHERE {'session_id' if table == 'messages' else 'id'} = ?", [sid]
        )
    if table == "messages":
        assert "damaged" in server.messages(sid)[0]["parts"][0]["text"]
    assert server.turn(sid, "second")["parts"][-1]["text"] == "second"
