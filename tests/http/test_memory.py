"""Section M over HTTP: facts, a session's memory, and real processes that are told to stop or are killed."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import httpx
import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD, until
from tests.memory.fake_openviking import fake_openviking


@pytest.fixture
def remembering(start: Start) -> Served:
    return start(remembers=True)


def memory(server: Served, sid: str) -> Any:
    return server.get(f"/api/sessions/{sid}/memory")


def facts(server: Served, query: str | None = None) -> list[str]:
    params = {} if query is None else {"query": query}
    return [item["text"] for item in server.get("/api/memory", params=params)["items"]]


def commit(server: Served, sid: str, **body: Any) -> Any:
    return server.post(f"/api/sessions/{sid}/memory/commit", body)


def rows(directory: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(directory / "holdfast.db")) as db:
        return db.execute(sql).fetchall()


CLEAN = {"dirty_turns": 0, "committing": False, "committed_turns": 0, "last_error": None, "provider": None}


def test_a_session_says_how_it_stands_with_its_memory(remembering: Served) -> None:
    """M1 M2 M3: turns make it dirty, the call commits them and says how many, a second one says that nothing is new."""
    server = remembering
    sid = server.session()
    assert commit(server, sid)["nothing_new"]
    assert memory(server, sid) == CLEAN
    for said in ("My name is Anna.", "I live in Lisbon."):
        server.turn(sid, said)
    assert memory(server, sid) == {**CLEAN, "dirty_turns": 2, "provider": "notes"}
    assert facts(server) == []
    done = {**CLEAN, "committed_turns": 2, "provider": "notes"}
    assert commit(server, sid) == {**done, "committed": 2, "nothing_new": False}
    assert commit(server, sid) == {**done, "committed": 0, "nothing_new": True}
    assert sorted(facts(server)) == ["Lives in Lisbon.", "Name: Anna."]


def test_a_new_session_remembers_what_its_predecessor_heard(remembering: Served) -> None:
    """M2: naming the predecessor commits it; the next question has the fact in front of it, with its source."""
    server = remembering
    first = server.session()
    answer = server.turn(first, "I live in Lisbon.")
    second = server.session(previous_session_id=first)
    until(lambda: facts(server), lambda found: found == ["Lives in Lisbon."])
    rid = server.begin(second, "Where do I live?")
    server.ended(rid)
    (event,) = [frame.data for frame in server.events(rid) if frame.event == "memory.recalled"]
    (item,) = event["items"]
    assert (item["text"], item["source"], item["message_id"]) == ("Lives in Lisbon.", first, answer["id"])
    assert server.answer(second)["parts"][0] == {"type": "remembered", "items": [item]}


def test_facts_are_listed_searched_changed_pinned_and_erased(remembering: Served) -> None:
    """Facts come newest first in pages, are found by words and beginnings, and are a person's to change."""
    server = remembering
    sid = server.session()
    answer = server.turn(sid, "I live in Lisbon. I love olives. I hate noise. My dog is called Rex.")
    commit(server, sid)
    page = server.get("/api/memory", params={"limit": 3})
    rest = server.get("/api/memory", params={"limit": 3, "cursor": page["next"]})
    assert [len(page["items"]), len(rest["items"]), rest["next"]] == [3, 1, None]
    (dog,) = server.get("/api/memory", params={"query": "dog re"})["items"]
    assert (dog["session_id"], dog["message_id"], dog["pinned"]) == (sid, answer["id"], False)
    assert set(dog) == {"id", "text", "session_id", "message_id", "created_at", "updated_at", "pinned", "confirmed"}
    where = f"/api/memory/{dog['id']}"
    changed = server.call("PATCH", where, {"text": "Rex is a terrier.", "pinned": True}, 200)
    new = {"text": "Rex is a terrier.", "pinned": True, "confirmed": True, "updated_at": changed["updated_at"]}
    assert changed == {**dog, **new}
    assert server.call("PATCH", where, {}, 200) == changed
    assert facts(server, "called") == []
    assert facts(server)[0] == "Rex is a terrier."
    server.call("DELETE", where, expect=204)
    assert len(facts(server)) == 3
    server.refused("not-found", "DELETE", where)
    server.refused("not-found", "PATCH", where, {"pinned": True})
    server.refused("invalid", "PATCH", where, {"text": ""})
    server.refused("invalid", "PATCH", where, {"words": "x"})
    server.refused("invalid", "GET", "/api/memory?cursor=nonsense")
    assert facts(server, "?!") == []


def test_a_fact_is_added_by_hand(remembering: Served) -> None:
    """It is recalled like any other, comes from no session, and is there once however often it is added."""
    server = remembering
    added = server.post("/api/memory", {"text": "  Lives in Lisbon.  "}, 201)
    assert (added["text"], added["session_id"], added["confirmed"]) == ("Lives in Lisbon.", "", True)
    assert server.post("/api/memory", {"text": "Lives in Lisbon."}, 201) == added
    server.call("PATCH", f"/api/memory/{added['id']}", {"text": "Lives in Porto."}, 200)
    again = server.post("/api/memory", {"text": "Lives in Lisbon."}, 201)
    assert again["id"] != added["id"]
    assert facts(server) == ["Lives in Lisbon.", "Lives in Porto."]
    answer = server.turn(server.session(), "Who lives in Porto?")
    recalled = [item for part in answer["parts"] if part["type"] == "remembered" for item in part["items"]]
    assert {"text": "Lives in Porto.", "fact_id": added["id"]} in recalled
    server.refused("invalid", "POST", "/api/memory", {"text": "  "})


def test_a_server_without_memory_takes_no_facts(start: Start) -> None:
    """It would never use them."""
    start().refused("not-allowed", "POST", "/api/memory", {"text": "Lives in Lisbon."})


def test_calls_on_unknown_sessions_are_refused_and_harmless(remembering: Served) -> None:
    """M10: an unknown session has no memory to look at or to commit, and naming it as a predecessor does no harm."""
    server = remembering
    server.refused("not-found", "GET", "/api/sessions/ses_none/memory")
    server.refused("not-found", "POST", "/api/sessions/ses_none/memory/commit", {})
    server.refused("invalid", "POST", "/api/sessions", {"memory": "elephant"})
    sid = server.session()
    for name in ("elephant", "none"):
        server.refused("invalid", "POST", f"/api/sessions/{sid}/memory/commit", {"provider": name})
    server.session(previous_session_id="ses_none")
    assert server.get("/api/memory/providers")["items"] == [{"name": "notes", "default": True, "problem": None}]


def test_an_incognito_session_leaves_no_trace(remembering: Served) -> None:
    """M7: a session with `memory: none` teaches nothing and recalls nothing, whatever is asked of it."""
    server = remembering
    known = server.session()
    server.turn(known, "My name is Anna.")
    commit(server, known)
    sid = server.session(memory="none", settings={"temperature": 0})
    looked = server.look(sid)
    assert (looked["memory"], looked["settings"]) == ("none", {"temperature": 0, "memory": "none"})
    answer = server.turn(sid, "I live in Lisbon. What is my name?")
    assert [part["type"] for part in answer["parts"]] == ["text"]
    assert commit(server, sid, provider="notes")["nothing_new"]
    server.session(previous_session_id=sid)
    server.call("DELETE", f"/api/sessions/{sid}", expect=204)
    assert facts(server) == ["Name: Anna."]
    assert server.call("PATCH", f"/api/sessions/{known}", {"memory": "none"}, 200)["memory"] == "none"
    assert server.call("PATCH", f"/api/sessions/{known}", {"memory": None}, 200)["memory"] is None
    server.terminate()
    assert rows(server.data_dir, "SELECT session_id FROM ledgers") == [(known,)]


@pytest.mark.parametrize("forget", [False, True])
def test_deleting_remembers_first_unless_it_is_to_be_forgotten(start: Start, forget: bool) -> None:
    """M2: delete hides at once and keeps what was learned; with `?forget=true` nothing of it is known any more."""
    server = start(remembers=True, engine={"sweep_interval": 0.2})
    sid = server.session()
    server.turn(sid, "I live in Lisbon.")
    commit(server, sid)
    server.turn(sid, "I love olives.")
    server.call("DELETE", f"/api/sessions/{sid}", expect=204, params={"forget": str(forget).lower()})
    server.refused("not-found", "GET", f"/api/sessions/{sid}")
    wanted = [] if forget else ["Likes olives.", "Lives in Lisbon."]
    until(lambda: facts(server), lambda found: found == wanted)
    until(lambda: rows(server.data_dir, "SELECT id FROM sessions"), lambda left: left == [])
    assert facts(server) == wanted


# ---- processes ----


def test_sigterm_commits_what_is_dirty(start: Start) -> None:
    """M8: told to stop, a server remembers what was said before it goes, exit code 0, and the next life has it."""
    server = start(remembers=True)
    sid = server.session()
    server.turn(sid, "My name is Anna.")
    server.turn(sid, "I live in Lisbon.")
    assert server.terminate() == 0
    assert rows(server.data_dir, "SELECT count(*) FROM facts") == [(2,)]
    assert rows(server.data_dir, "SELECT * FROM dirty_turns") == []
    server = start(remembers=True)
    assert memory(server, sid)["committed_turns"] == 2


@pytest.mark.parametrize("point", ["begin", "apply", "finish"])
def test_killed_at_each_point_of_a_commit_facts_are_written_once(start: Start, point: str) -> None:
    """M11: killed before the commit is pinned, before its facts are written, and before the ledger knows of them, each
    fact is there in the end and none was written twice."""
    server = start(remembers=True)
    sid = server.session()
    for n in range(3):
        server.turn(sid, f"Remember that box {n} is blue.")
    server.order(hold=["store", point])
    with calling(server, sid):
        server.order(held=["store", point])
        server.turn(sid, "Remember that box 3 is blue.")
        server.kill()
    written = 3 if point == "finish" else 0
    assert rows(server.data_dir, "SELECT count(*) FROM facts") == [(written,)]
    assert len(rows(server.data_dir, "SELECT * FROM dirty_turns")) == 4
    server = start(remembers=True)
    until(lambda: memory(server, sid), lambda found: found["dirty_turns"] == 0)
    assert len(facts(server)) == 4
    server.terminate()
    assert rows(server.data_dir, "SELECT seq FROM sqlite_sequence WHERE name = 'facts'") == [(4,)]


@contextmanager
def calling(server: Served, sid: str) -> Iterator[None]:
    """Somebody waits for a commit; that the server goes meanwhile is no matter to them."""

    def call() -> None:
        with suppress(httpx.HTTPError):
            httpx.post(f"{server.url}/api/sessions/{sid}/memory/commit", verify=False, json={}, timeout=GUARD)

    caller = threading.Thread(target=call)
    caller.start()
    yield
    caller.join(GUARD)


def test_a_provider_that_is_down_is_shown_and_tried_again(start: Start) -> None:
    """M5: the error of a failed commit is in the session's memory until a later try, by itself, has succeeded."""
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(fake_openviking()) as there,
    ):
        there.fails["commit"] = 2
        configured = {"provider": "openviking", "openviking": {"url": there.url}}
        server = start(remembers=True, memory=configured, engine={"sweep_interval": 0.1, "memory": {"pause": 0.2}})
        sid = server.session()
        server.turn(sid, "one")
        failed = commit(server, sid)
        assert (failed["committed"], failed["nothing_new"], failed["dirty_turns"]) == (0, False, 1)
        assert "INTERNAL" in failed["last_error"]
        done = until(lambda: memory(server, sid), lambda found: found["dirty_turns"] == 0)
        assert (done["last_error"], done["committed_turns"]) == (None, 1)
