"""Section J over HTTP: the journal was away when a dead run was ended. The output is sought until it is found or given
up; meanwhile the session can be used."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said, until

SPOKEN: list[dict[str, Any]] = [
    {"say": "one "},
    {"call": "a", "result": 1},
    {"say": "two"},
    {"meet": "here"},
    {"say": " three"},
]
RARELY = {"sweep_interval": 3600.0, "fence_wait": 20.0}
"""Only readers look, and they wait for the journal."""


def lost(start: Start) -> tuple[str, str, dict[str, Any]]:
    """A run that died with its process at its gate: session, run, and its question."""
    server = start()
    sid = server.session()
    taken = server.send(sid, SPOKEN)
    rid = taken["run"]["id"]
    server.order(reached="here")
    with server.watch(rid) as stream:
        stream.until("text.delta"), stream.until("text.delta")
    server.kill()
    return sid, rid, taken["message"]


def state(thing: Any) -> str | None:
    """Of a run's or a message's recovery."""
    found: str | None = None if thing["recovery"] is None else thing["recovery"]["state"]
    return found


def check_pending(server: Served, sid: str, rid: str) -> None:
    run, answer = server.run(rid), server.answer(sid)
    assert (run["status"], state(run)) == ("interrupted", "pending")
    assert (answer["status"], state(answer), answer["parts"]) == ("interrupted", "pending", [])
    assert server.look(sid)["active_run"] is None


def check_recovered(server: Served, sid: str, rid: str, status: str = "interrupted") -> None:
    """The output comes before the one notice, and nothing is left of the search."""
    run, answer = server.run(rid), server.answer(sid)
    assert (run["status"], state(run), answer["status"], state(answer)) == (status, "recovered", status, "recovered")
    assert [part["type"] for part in answer["parts"]] == ["text", "tool", "text"]
    assert said(answer) == "one two"
    assert (answer["parts"][1]["state"], answer["parts"][1]["result"]) == ("done", 1)
    assert [frame.event for frame in server.events(rid)].count(f"run.{status}") == 1
    assert run["last_seq"] == answer["last_seq"] == len(server.events(rid))


# ---- J1 ----


def test_a_journal_that_is_away_leaves_a_usable_session(start: Start) -> None:
    """J1: the notice says pending; the question is shown; rename and the next send work, and the events are a 503."""
    sid, rid, question = lost(start)
    server = start(journal_away=True)
    check_pending(server, sid, rid)
    assert server.messages(sid)[0] == question
    server.refused("storage-unavailable", "GET", f"/api/runs/{rid}/events")
    assert server.call("PATCH", f"/api/sessions/{sid}", {"title": "still here"}, 200)["title"] == "still here"
    more = server.send(sid, "and now?", on_busy="reject")
    assert more["message"]["parent_id"] == server.run(rid)["message_id"]
    server.order(journal_away=False)
    assert server.ended(more["run"]["id"])["status"] == "complete"
    assert [said(message) for message in server.messages(sid)][1:] == ["one two", "and now?", "and now?"]


# ---- J2 ----

LOOKS: dict[str, Callable[[Served, str, str], Any]] = {
    "session": lambda server, sid, rid: server.look(sid),
    "messages": lambda server, sid, rid: server.messages(sid),
    "run": lambda server, sid, rid: server.run(rid),
    "events": lambda server, sid, rid: server.events(rid),
    "recover": lambda server, sid, rid: server.post(f"/api/runs/{rid}/recover"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_later_read_recovers_the_output(start: Start, look: str) -> None:
    """J2: when the journal is back, the next reader finds text and finished tools."""
    sid, rid, _ = lost(start)
    server = start(journal_away=True, engine=RARELY)
    check_pending(server, sid, rid)
    server.order(journal_away=False)
    LOOKS[look](server, sid, rid)
    check_recovered(server, sid, rid)


def test_a_pending_run_is_not_continued_until_its_output_is_known(start: Start) -> None:
    """J2 X5: a 409 while the journal is away; then it goes on after what it had said, and no tool runs twice."""
    sid, rid, _ = lost(start)
    server = start(journal_away=True, engine=RARELY)
    server.refused("not-allowed", "POST", f"/api/runs/{rid}/continue", {})
    server.order(journal_away=False)
    server.order(open="here")
    server.ended(server.post(f"/api/runs/{rid}/continue", {}, 202)["run"]["id"])
    assert said(server.answer(sid)) == "one two three"
    assert server.effects == ["a"]


# ---- J6 ----


def test_past_the_age_it_is_given_up_without_a_look_and_recover_looks_again(start: Start) -> None:
    """J6: too old: neutral, and the journal is not touched but kept; an explicit recover finds the output."""
    sid, rid, _ = lost(start)
    server = start(journal_away=True, engine=RARELY)
    check_pending(server, sid, rid)
    server.kill()
    server = start(engine=RARELY, policy={"give_up_after": 0.0})
    answer = server.answer(sid)
    assert (answer["status"], state(answer), answer["parts"]) == ("interrupted", "none", [])
    assert server.order(calls=["journal", "fence"]) == server.order(calls=["journal", "read"]) == 0
    assert [frame.event for frame in server.events(rid)][-1] == "text.delta"  # kept, and nobody sealed it
    server.order(journal_away=True)
    assert state(server.post(f"/api/runs/{rid}/recover")) == "none"
    server.order(journal_away=False)
    assert state(server.post(f"/api/runs/{rid}/recover")) == "recovered"
    check_recovered(server, sid, rid)
    server.refused("not-allowed", "POST", f"/api/runs/{rid}/recover")
    server.refused("not-found", "POST", "/api/runs/run_none/recover")


def test_a_journal_that_is_garbage_is_pending_until_it_is_back(start: Start, tmp_path: Path) -> None:
    """J1 J2: the file cannot be opened: sessions are read all the same, and with the file back all is recovered."""
    sid, rid, question = lost(start)
    file = tmp_path / "data" / "journal.db"
    db = sqlite3.connect(file)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    good = file.read_bytes()
    file.write_bytes(b"this is not a database\n" * 1000)
    server = start()
    check_pending(server, sid, rid)
    assert server.messages(sid)[0] == question
    server.refused("storage-unavailable", "GET", f"/api/runs/{rid}/events")
    server.refused("storage-unavailable", "GET", "/readyz")
    server.kill()
    for name in ("journal.db-wal", "journal.db-shm"):
        file.with_name(name).unlink(missing_ok=True)
    file.write_bytes(good)
    server = start()
    check_recovered(server, sid, rid)
    assert server.get("/readyz") == {"status": "ok"}


def test_a_damaged_journal_is_said_and_refuses_new_messages(start: Start, tmp_path: Path) -> None:
    """J1: the log names it at the start, a message is refused at once with the reason, and so is readiness; after the
    file was moved away, messages are accepted without a restart."""
    sid, rid, _ = lost(start)
    file = tmp_path / "data" / "journal.db"
    for name in ("journal.db-wal", "journal.db-shm"):
        file.with_name(name).unlink(missing_ok=True)
    file.write_bytes(b"this is not a database\n" * 1000)
    server = start()
    assert "The journal is damaged" in server.complaints
    problem = server.refused("storage-unavailable", "POST", f"/api/sessions/{sid}/runs", {"input": "and now?"})
    assert "journal.db is not a database" in problem["detail"]
    assert "journal.db is not a database" in server.refused("storage-unavailable", "GET", "/readyz")["detail"]
    assert server.run(rid)["reason"] == "journal-unavailable"
    file.rename(file.with_name("journal.damaged"))
    until(lambda: server.http.get("/readyz").status_code, lambda status: status == 200)
    assert server.ended(server.send(sid, "and now?")["run"]["id"])["status"] == "complete"


def test_a_full_disk_is_not_ready(start: Start) -> None:
    """While every message gets 507, so does the readiness check."""
    server = start()
    sid = server.session()
    server.order(free=0)
    server.refused("storage-full", "POST", f"/api/sessions/{sid}/runs", {"input": "hello"})
    server.refused("storage-full", "GET", "/readyz")


@pytest.mark.parametrize("table", ["sessions", "runs"])
def test_a_damaged_store_is_not_ready(start: Start, table: str) -> None:
    """While nothing can be listed and no message is accepted, the readiness check says why."""
    server = start()
    server.session()
    server.terminate()
    file = server.data_dir / "holdfast.db"
    with closing(sqlite3.connect(file)) as db:
        (size,) = db.execute("PRAGMA page_size").fetchone()
        roots = db.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = ? AND rootpage", (table,)).fetchall()
    with file.open("r+b") as damaged:
        for (page,) in roots:
            damaged.seek((page - 1) * size)
            damaged.write(b"\xff" * size)
    server = start()
    listed = server.refused("storage-unavailable", "GET", f"/api/{table}")
    assert "holdfast.db cannot be used" in listed["detail"]
    assert server.refused("storage-unavailable", "GET", "/readyz")["detail"] == listed["detail"]
    assert server.get("/healthz") == {"status": "ok"}
