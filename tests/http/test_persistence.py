"""Section P over HTTP: writers at the same time, whole states, and what moves `updated_at`."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.http.client import OPEN, Served
from tests.http.conftest import Start
from tests.http.streams import said, until

HALF: list[dict[str, Any]] = [{"say": "half "}, {"meet": "here"}, {"say": "whole"}]


def amend(server: Served, sid: str, **fields: Any) -> Any:
    return server.call("PATCH", f"/api/sessions/{sid}", fields, 200)


def check_agree(server: Served) -> None:
    """P7: every session is in the list exactly as it is by itself, newest activity first."""
    items = server.get("/api/sessions", params={"limit": 200})["items"]
    assert items == [server.look(item["id"]) for item in items]
    assert [item["updated_at"] for item in items] == sorted((item["updated_at"] for item in items), reverse=True)


# ---- P1, P4 ----


def test_readers_see_one_whole_state_or_the_next(server: Served) -> None:
    """P1: while several fields are changed together again and again, no reader sees a mix, by any call."""
    sid = server.session(title="0", project="0", tags=["0"])

    def write() -> None:
        for n in range(1, 60):
            amend(server, sid, title=f"{n}", project=f"{n}", tags=[f"{n}"])

    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(write)
        seen = 0
        while not writing.done():
            for found in (server.look(sid), server.listed(sid)):
                assert found["title"] == found["project"] == found["tags"][0]
                assert int(found["title"]) >= seen
                seen = int(found["title"])
        writing.result()
    assert server.look(sid)["title"] == "59"


def test_a_change_of_fields_and_branch_is_one_step(server: Served) -> None:
    """P1 O1: if the branch cannot be shown, nothing else of the same call is done either."""
    sid = server.session(title="before")
    first = server.turn(sid, "one")
    server.turn(sid, "two")
    before = server.look(sid)
    server.refused("not-found", "PATCH", f"/api/sessions/{sid}", {"title": "after", "head": "msg_none"})
    assert server.look(sid) == before
    version = before["version"]
    head = {"If-Match": f'"{version}"'}
    server.call("POST", f"/api/sessions/{sid}/truncate", {"message_id": first["id"]}, 200, headers=head)
    both = server.call("PATCH", f"/api/sessions/{sid}", {"title": "after", "head": first["id"]}, 200)
    assert (both["title"], both["version"], both["head"]) == ("after", version + 2, before["head"])


def test_writers_at_the_same_time_all_succeed_and_none_is_lost(server: Served) -> None:
    """P4: rename, tags, pin, undo and redo, queued sends and a cancel against runs that stream and end: nobody is told
    of a conflict, and everything that each did is there."""
    sid = server.session()
    server.turn(sid, "first")
    rounds = 12

    def rename() -> None:
        for n in range(rounds):
            amend(server, sid, title=f"title {n}")

    def label() -> None:
        for n in range(rounds):
            amend(server, sid, tags=[f"tag {n}"], pinned=bool(n % 2))

    def file_under() -> None:
        for n in range(rounds):
            amend(server, sid, project=f"project {n}")

    def send() -> list[str]:
        return [
            server.begin(sid, [{"tokens": 5, "rate": 500}, {"say": f"end {n}"}], key=f"k{n}") for n in range(rounds)
        ]

    def cancel() -> None:
        for _ in range(rounds):
            active = server.look(sid)["active_run"]
            if active is not None:
                assert server.cancel(active)["status"] in ("cancelled", "complete")

    with ThreadPoolExecutor(5) as writers:
        sending = writers.submit(send)
        others = [writers.submit(work) for work in (rename, label, file_under, cancel)]
        for other in others:
            other.result()
        rids = sending.result()
    ended = [server.ended(rid) for rid in rids]
    assert {run["status"] for run in ended} <= {"complete", "cancelled"}
    session = server.look(sid)
    last = rounds - 1
    assert (session["title"], session["project"]) == (f"title {last}", f"project {last}")
    assert (session["tags"], session["pinned"]) == ([f"tag {last}"], bool(last % 2))
    assert (session["active_run"], session["queued_runs"]) == (None, [])
    branch = server.messages(sid)
    answered = [message["run_id"] for message in branch if message["role"] == "assistant"][1:]
    # one that was sent to a free session is in the tree from the beginning, also if it was stopped before it began
    joined = [run["id"] for run in ended if run["started_at"] is not None or run["id"] in answered]
    assert answered == joined  # in the order in which they were sent
    for run, message in zip([r for r in ended if r["id"] in joined], branch[3::2], strict=True):
        assert (message["status"], message["last_seq"]) == (run["status"], run["last_seq"])
    check_agree(server)


def test_undo_and_redo_against_renames_and_ends(server: Served) -> None:
    """P4: half of the writers move the head while others rename and a run ends; all succeed, and the count is right."""
    sid = server.session()
    first = server.turn(sid, "one")
    rid = server.stand(sid, HALF)
    before = server.look(sid)["version"]

    def back_and_forth() -> None:
        for _ in range(10):
            server.post(f"/api/sessions/{sid}/undo")
            server.post(f"/api/sessions/{sid}/redo")

    def rename() -> None:
        for n in range(20):
            amend(server, sid, title=f"{n}")

    with ThreadPoolExecutor(3) as writers:
        work = [writers.submit(back_and_forth), writers.submit(rename), writers.submit(server.ended, rid)]
        server.order(open="here")
        for one in work:
            one.result()
    session, run = server.look(sid), server.run(rid)
    assert (run["status"], run["reason"]) in (("cancelled", "superseded"), ("complete", None))
    assert (session["title"], session["active_run"], session["head"]) == ("19", None, run["message_id"])
    assert session["version"] == before + 20 + 20 + 1  # each undo and redo, each rename, and the settling
    assert [message["id"] for message in server.messages(sid)][1] == first["id"]
    assert server.answer(sid)["status"] == run["status"]


# ---- P2, P3 ----


def test_progress_is_durable_without_touching_the_session(start: Start) -> None:
    """P2: while a run streams the journal grows and the session's row stays as it is; a kill then loses nothing."""
    server = start()
    sid = server.session()
    rid = server.begin(sid, [{"tokens": 100_000, "rate": 400}])
    with server.watch(rid) as stream:
        stream.until("text.delta")
        before = server.look(sid)
        writes = server.order(calls=["store", "transact"])
        for _ in range(40):
            stream.until("text.delta")
        assert server.look(sid) == before
        assert server.order(calls=["store", "transact"]) == writes
        assert server.run(rid)["last_seq"] >= stream.frames[-1].seq
        server.kill()
    server = start()
    assert server.answer(sid)["last_seq"] >= stream.frames[-1].seq


def test_nothing_is_written_without_progress_or_after_the_end(server: Served) -> None:
    """P3: no commit while the run says nothing, and none of its journal after it has ended."""
    sid = server.session()
    rid = server.stand(sid, HALF)

    def commits() -> tuple[float, float]:
        return server.metric("holdfast_journal_commits_total"), server.metric("holdfast_events_total")

    before = commits()
    for _ in range(5):
        server.answer(sid)
        server.run(rid)
    assert commits() == before
    server.order(open="here")
    run = server.ended(rid)
    after = commits()
    assert after[1] == run["last_seq"] == len(server.events(rid))
    amend(server, sid, title="renamed")
    server.answer(sid)
    assert commits() == after


# ---- P5 ----


def test_when_a_run_is_said_to_have_ended_nothing_says_active(server: Served) -> None:
    """P5: at the change that tells of a run's end, session, list, run and message agree that it has."""
    sids = [server.session() for _ in range(4)]
    with server.stream("GET", "/api/events") as changes:
        for n, sid in enumerate(sids):
            rid = server.begin(sid, [{"say": "x"}, {"fail": ["a", "b"]}] if n % 2 else "whole")
            while (frame := changes.until("run.changed")).data["status"] in OPEN:
                pass
            assert frame.data["run_id"] == rid
            session = server.look(sid)
            assert (session["active_run"], session["queued_runs"]) == (None, [])
            assert server.listed(sid) == session
            run, answer = server.run(rid), server.answer(sid)
            assert run["status"] == answer["status"] == frame.data["status"]
            assert run["ended_at"] is not None
            assert server.get("/api/runs", params={"status": "queued,running,waiting"})["items"] == []


def test_no_reader_sees_an_end_in_halves(server: Served) -> None:
    """P5 P1: read again and again while runs end: a session without an active run has no streaming message."""
    sid = server.session()
    with ThreadPoolExecutor(1) as other:
        sending = other.submit(lambda: [server.ended(server.begin(sid, "quick")) for _ in range(10)])
        while not sending.done():
            idle_before = server.look(sid)
            branch = server.messages(sid)
            idle_after = server.look(sid)
            if idle_before["version"] == idle_after["version"] and idle_before["active_run"] is None:
                assert all(message["status"] != "streaming" for message in branch)
        sending.result()


# ---- P6, P7, P8 ----

NO_ACTIVITY: dict[str, Callable[[Served, str], Any]] = {
    "rename": lambda server, sid: amend(server, sid, title="new"),
    "pin": lambda server, sid: amend(server, sid, pinned=True),
    "archive": lambda server, sid: amend(server, sid, archived=True),
    "tags": lambda server, sid: amend(server, sid, tags=["a"]),
    "project": lambda server, sid: amend(server, sid, project="p"),
    "model": lambda server, sid: amend(server, sid, model="m"),
    "reading": lambda server, sid: (server.look(sid), server.messages(sid)),
}


def test_only_activity_moves_updated_at(server: Served) -> None:
    """P6: rename, pin and the like leave it alone; accepting and settling move it, and the list."""
    old, new = server.session(), server.session()
    server.turn(old, "x")
    server.turn(new, "x")
    before = server.look(old)["updated_at"]
    for how, change in NO_ACTIVITY.items():
        change(server, old)
        assert server.look(old)["updated_at"] == before, how
    amend(server, old, archived=False)
    assert [item["id"] for item in server.get("/api/sessions")["items"]] == [new, old]
    rid = server.stand(old, HALF)
    accepted = server.look(old)["updated_at"]
    assert accepted > before
    assert [item["id"] for item in server.get("/api/sessions")["items"]] == [old, new]
    queued = server.begin(old, "later")
    assert server.look(old)["updated_at"] > accepted
    server.cancel(queued)
    at_gate = server.look(old)["updated_at"]
    server.order(open="here")
    server.ended(rid)
    assert server.look(old)["updated_at"] > at_gate
    check_agree(server)


@pytest.mark.parametrize(("every", "moves"), [(0.0, True), (3600.0, False)], ids=["at once", "too soon"])
def test_a_finished_tool_moves_updated_at_now_and_then(start: Start, every: float, moves: bool) -> None:
    """P6: once in a while, as one row that is no new version of the session."""
    server = start(engine={"touch_every": every})
    sid = server.session()
    rid = server.stand(sid, [{"say": "x"}, {"meet": "here"}, {"call": "a"}, {"meet": "there"}])
    before = server.look(sid)
    server.order(open="here")
    server.order(reached="there")
    after = server.look(sid)
    assert (after["updated_at"] > before["updated_at"]) is moves
    assert after["version"] == before["version"]
    server.cancel(rid)


def test_the_list_and_the_search_never_disagree_with_the_sessions(server: Served) -> None:
    """P7: at every step of a session's life the list and a search show it as it is by itself."""
    sid = server.session(title="zebra")
    other = server.session(title="zebra crossing")

    def check() -> None:
        check_agree(server)
        for item in server.get("/api/sessions", params={"query": "zebra"})["items"]:
            item.pop("match")
            assert item == server.look(item["id"])

    check()
    rid = server.stand(sid, HALF)
    check()
    queued = server.begin(sid, "queued")
    check()
    server.order(open="here")
    server.ended(rid)
    server.ended(queued)
    check()
    server.post(f"/api/sessions/{sid}/undo")
    check()
    amend(server, sid, pinned=True, archived=True)
    assert [item["id"] for item in server.get("/api/sessions")["items"]] == [other]
    (archived,) = server.get("/api/sessions", params={"archived": "true"})["items"]
    assert archived == server.look(sid)
    server.call("DELETE", f"/api/sessions/{other}", expect=204)
    assert server.get("/api/sessions")["items"] == []
    server.refused("not-found", "GET", f"/api/sessions/{other}")


def test_pages_of_the_list_are_the_list(server: Served) -> None:
    """P7: read page by page, with activity in between that only moves things up, nothing is missed."""
    sids = [server.session(title=f"{n}") for n in range(7)]
    found: list[str] = []
    cursor = None
    for page in itertools.count():
        params = {"limit": 2, **({} if cursor is None else {"cursor": cursor})}
        answer = server.get("/api/sessions", params=params)
        found += [item["id"] for item in answer["items"]]
        if page == 1:
            server.turn(sids[-1], "moves up")
        if (cursor := answer["next"]) is None:
            break
    assert found == sids[::-1]
    server.refused("invalid", "GET", "/api/sessions", params={"cursor": "nonsense"})


def test_a_title_that_a_person_set_is_a_persons(server: Served) -> None:
    """P8: given at the beginning or while a run streams, it is marked as one that is not to be replaced."""
    assert server.look(server.session())["titled_by"] == "nobody"
    assert server.look(server.session(title="mine"))["titled_by"] == "person"
    sid = server.session()
    rid = server.stand(sid, HALF)
    assert amend(server, sid, title="mine")["titled_by"] == "person"
    server.order(open="here")
    server.ended(rid)
    assert (server.look(sid)["title"], said(server.answer(sid))) == ("mine", "half whole")


def test_killed_among_writers_whatever_was_answered_is_there(start: Start) -> None:
    """P1 P4 O1: renames, undo and redo and sends until the process is killed: each session is one whole state, with all
    that its writers were told of."""
    server = start()
    sids = [server.session(title="-1", project="-1") for _ in range(4)]
    for sid in sids:
        server.turn(sid, "first")
    told: dict[str, list[Any]] = {sid: [server.look(sid)] for sid in sids}

    def write(sid: str) -> None:
        with suppress(httpx.HTTPError, RuntimeError):  # the server went
            for n in range(1000):
                told[sid].append(amend(server, sid, title=f"{n}", project=f"{n}"))
                told[sid].append(server.post(f"/api/sessions/{sid}/undo"))
                told[sid].append(server.post(f"/api/sessions/{sid}/redo"))

    with ThreadPoolExecutor(len(sids)) as writers:
        writing = [writers.submit(write, sid) for sid in sids]
        until(lambda: min(len(list(answers)) for answers in told.values()), lambda count: count > 8)
        server.kill()
        for one in writing:
            one.result()
    server = start()
    for sid, answers in told.items():
        session, last = server.look(sid), answers[-1]
        assert last["version"] <= session["version"] <= last["version"] + 1
        assert session["title"] == session["project"]
        assert int(last["title"]) <= int(session["title"]) <= int(last["title"]) + 1
        if session["version"] == last["version"]:
            assert session == last
        assert session["active_run"] is None
    check_agree(server)
