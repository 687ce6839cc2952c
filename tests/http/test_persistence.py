"""Section P over HTTP: whole states, writers that are killed, lists and pages."""

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


# ---- P3 ----


def test_nothing_is_written_without_progress_or_after_the_end(fresh: Served) -> None:
    """P3: no commit while the run says nothing, and none of its journal after it has ended."""
    server = fresh
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


# ---- P7, P8 ----


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


@pytest.mark.parametrize("limit", [2, 7, 50])
def test_pages_of_the_list_are_the_list(server: Served, limit: int) -> None:
    """P7: read page by page, with activity in between that only moves a session up, each session is listed once."""
    sids = [server.session(title=f"{n}") for n in range(7)]
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = server.get("/api/sessions", params={"limit": limit, **({"cursor": cursor} if cursor else {})})
        found += [item["id"] for item in page["items"]]
        cursor = page["next"]
        assert len(page["items"]) == limit or cursor is None
        if len(found) <= 4:
            server.turn(sids[-1], "moves up")
    assert found == sids[::-1]


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
