"""Section J over HTTP: the journal was away when a dead run was ended. The output is sought until it is found or given
up; meanwhile the session can be used."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said, until
from tests.torn import tear

SPOKEN: list[dict[str, Any]] = [
    {"say": "one "},
    {"call": "a", "result": 1},
    {"say": "two"},
    {"meet": "here"},
    {"say": " three"},
]
SILENT: list[dict[str, Any]] = [{"meet": "here"}, {"hang": True}]
RARELY = {"sweep": 3600.0, "fence_wait": 20.0}
"""Only readers look, and they wait for the journal."""


def lost(start: Start, script: list[dict[str, Any]] = SPOKEN) -> tuple[str, str, dict[str, Any]]:
    """A run that died with its process at its gate: session, run, and its question."""
    server = start()
    sid = server.session()
    taken = server.send(sid, script)
    rid = taken["run"]["id"]
    server.order(reached="here")
    with server.watch(rid) as stream:
        stream.until("run.started")
        if script is SPOKEN:
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
    """J1: the notice says pending; the question is there; rename and the next send work, and the events are a 503."""
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


def test_a_journal_that_does_not_answer_holds_up_nobody(start: Start) -> None:
    """J1: a fence that hangs is waited for as long as is set, not longer: the reader is told that it is pending."""
    sid, rid, _ = lost(start)
    server = start(journal_away=True, engine={"fence_wait": 0.05, "sweep": 3600.0})
    server.order(hold=["journal", "fence"])
    server.order(journal_away=False)
    check_pending(server, sid, rid)
    server.order(release=["journal", "fence"])
    until(lambda: state(server.run(rid)), lambda found: found == "recovered")
    check_recovered(server, sid, rid)


def test_a_journal_that_was_there_leaves_no_word_of_recovery(start: Start) -> None:
    """J1: settled at once, the run and its message have no recovery."""
    sid, rid, _ = lost(start)
    server = start()
    assert state(server.run(rid)) is None
    assert state(server.answer(sid)) is None


def test_an_open_message_whose_journal_is_away_has_no_parts(start: Start) -> None:
    """J1: while a run goes on and its journal cannot be read, its message is shown, empty and streaming."""
    server = start()
    sid = server.session()
    rid = server.stand(sid, [{"say": "one"}, {"meet": "here"}, {"hang": True}])
    server.order(journal_away=True)
    answer = server.answer(sid)
    assert (answer["run_id"], answer["status"], answer["parts"]) == (rid, "streaming", [])
    server.order(journal_away=False)
    assert said(server.answer(sid)) == "one"


# ---- J2 ----

LOOKS: dict[str, Callable[[Served, str, str], Any]] = {
    "session": lambda server, sid, rid: server.look(sid),
    "messages": lambda server, sid, rid: server.messages(sid),
    "run": lambda server, sid, rid: server.run(rid),
    "events": lambda server, sid, rid: server.events(rid),
    "recover": lambda server, sid, rid: server.post(f"/api/runs/{rid}/recover"),
    "continue": lambda server, sid, rid: server.post(f"/api/runs/{rid}/continue", {}, 202),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_later_read_recovers_the_output(start: Start, look: str) -> None:
    """J2: when the journal is back, the next reader finds text and finished tools, and so do all after a restart."""
    sid, rid, _ = lost(start)
    server = start(journal_away=True, engine=RARELY)
    check_pending(server, sid, rid)
    server.order(journal_away=False)
    LOOKS[look](server, sid, rid)
    assert state(server.run(rid)) == "recovered"
    if look == "continue":
        return
    check_recovered(server, sid, rid)
    before = server.get(f"/api/sessions/{sid}/messages"), server.run(rid)
    server.kill()
    server = start()
    assert (server.get(f"/api/sessions/{sid}/messages"), server.run(rid)) == before


def test_the_journals_own_end_decides(start: Start) -> None:
    """J2: it had completed and was not yet saved when the process died: recovered, it is complete."""
    server = start()
    sid = server.session()
    rid = server.stand(sid, SPOKEN[:4])
    server.order(hold=["store", "_settle"])
    server.order(open="here")
    server.order(held=["store", "_settle"])
    server.kill()
    server = start(journal_away=True, engine=RARELY)
    check_pending(server, sid, rid)
    server.order(journal_away=False)
    check_recovered(server, sid, rid, "complete")


def test_a_cancel_before_the_crash_is_what_it_is_recovered_as(start: Start) -> None:
    """J2 C6: the cancel was stored, its end was not: recovered, the run is cancelled, once."""
    server = start(engine={"cancel_wait": 0.0})
    sid = server.session()
    rid = server.begin(sid, SPOKEN)
    with server.watch(rid) as stream:
        stream.until("text.delta"), stream.until("text.delta")
    server.order(journal_away=True)
    assert server.cancel(rid)["cancel_requested"]
    server.kill()
    server = start(journal_away=True, engine=RARELY)
    check_pending(server, sid, rid)
    server.order(journal_away=False)
    check_recovered(server, sid, rid, "cancelled")
    assert server.run(rid)["reason"] == "requested"


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


# ---- J3, J4 ----


def test_readers_at_the_same_time_cause_one_attempt(start: Start) -> None:
    """J3: while one reader's look is under way, all others are answered at once with what is there."""
    sid, rid, _ = lost(start)
    server = start(journal_away=True, engine=RARELY)
    server.order(hold=["journal", "fence"])
    server.order(journal_away=False)
    before = server.order(calls=["journal", "fence"])
    with ThreadPoolExecutor(1) as other:
        first = other.submit(server.messages, sid)
        server.order(held=["journal", "fence"])
        for _ in range(3):
            check_pending(server, sid, rid)
            assert server.listed(sid) == server.look(sid)
        assert not first.done()
        assert server.order(calls=["journal", "fence"]) == before + 1
        server.order(release=["journal", "fence"])
        assert said(first.result()[-1]) == "one two"
    check_recovered(server, sid, rid)
    assert server.order(calls=["journal", "fence"]) == before + 1


def test_a_journal_that_is_still_arriving_uses_up_nothing(start: Start) -> None:
    """J4: read ten times, in three lives, it stays pending; then it is recovered."""
    sid, rid, _ = lost(start)
    for _ in range(3):
        server = start(journal_away=True, engine=RARELY, policy={"max_attempts": 1})
        for _ in range(3):
            check_pending(server, sid, rid)
        assert state(server.post(f"/api/runs/{rid}/recover")) == "pending"
        server.kill()
    server = start(policy={"max_attempts": 1})
    check_recovered(server, sid, rid)


# ---- J5, J6 ----


def test_a_journal_without_output_uses_up_attempts(start: Start) -> None:
    """J5: two looks find nothing and leave it pending; the third makes the notice neutral, for good."""
    sid, rid, _ = lost(start, SILENT)
    server = start(journal_away=True, engine=RARELY)
    server.order(journal_away=False)
    assert [state(server.answer(sid)) for _ in range(4)] == ["pending", "pending", "none", "none"]
    looked = server.order(calls=["journal", "fence"])
    for _ in range(2):
        answer = server.answer(sid)
        assert (answer["status"], state(answer), answer["parts"]) == ("interrupted", "none", [])
        assert state(server.run(rid)) == "none"
        assert server.look(sid)["active_run"] is None
    assert server.order(calls=["journal", "fence"]) == looked
    server.kill()
    server = start()
    assert state(server.answer(sid)) == "none"
    server.refused("not-allowed", "POST", f"/api/runs/{rid}/recover")


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


def test_recover_of_a_run_that_lost_nothing_is_refused(start: Start) -> None:
    """J6: there is nothing to look for."""
    server = start()
    rid = server.turn(server.session(), "whole")["run_id"]
    server.refused("not-allowed", "POST", f"/api/runs/{rid}/recover")


# ---- J7 ----


@pytest.mark.parametrize("how", ["half", "checksum"])
def test_a_torn_record_loses_only_itself(start: Start, tmp_path: Path, how: str) -> None:
    """J7: the last record of one run is damaged: what came before it, and every other run, is there."""
    server = start()
    other = server.session()
    whole = server.turn(other, "whole")
    server.kill()
    sid, rid, question = lost(start)
    tear(tmp_path / "data" / "journal.db", rid, how)
    server = start()
    assert server.messages(sid)[0] == question
    answer = server.answer(sid)
    assert (answer["status"], said(answer)) == ("interrupted", "one ")
    assert [part["type"] for part in answer["parts"]] == ["text", "tool"]
    assert answer["parts"][1]["state"] == "done"
    frames = server.events(rid)
    assert [frame.event for frame in frames][-2:] == ["tool.finished", "run.interrupted"]
    assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
    assert server.answer(other) == whole
    assert said(server.turn(sid, "fine")) == "fine"


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
