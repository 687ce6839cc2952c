"""The change feed over HTTP: what happens to sessions, runs and approvals, from any cursor it gave."""

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import Frame, Stream, until

KINDS = ("session.changed", "session.deleted", "run.changed", "approval.changed", "reset")


def changes(server: Served, after: str | None = None) -> AbstractContextManager[Stream]:
    headers = {} if after is None else {"Last-Event-ID": after}
    return server.stream("GET", "/api/events", headers=headers)


def about(frames: list[Frame], sid: str) -> list[tuple[str, str | None]]:
    return [(frame.event, frame.data.get("status")) for frame in frames if frame.data.get("session_id") == sid]


def until_status(stream: Stream, *statuses: str) -> Frame:
    while (frame := stream.until("run.changed")).data["status"] not in statuses:
        pass
    return frame


def numbers(frames: list[Frame]) -> list[int]:
    return [int((frame.id or "").rpartition("-")[2]) for frame in frames]


def test_a_turn_is_told_from_beginning_to_end(server: Served) -> None:
    """P5 P7: created, accepted, running, waiting, decided, complete and deleted, in this order, each with its ids."""
    with changes(server) as stream:
        sid = server.session()
        rid = server.begin(sid, [{"say": "x"}, {"call": "a", "asks": True}, {"say": "y"}])
        asked = stream.until("approval.changed").data
        assert (asked["session_id"], asked["run_id"], asked["status"]) == (sid, rid, "waiting")
        until_status(stream, "waiting")
        server.post(f"/api/runs/{rid}/approvals/{asked['approval_id']}", {"decision": "once"})
        assert stream.until("approval.changed").data["status"] == "once"
        until_status(stream, "complete")
        server.call("DELETE", f"/api/sessions/{sid}", expect=204)
        assert stream.until("session.deleted").data["session_id"] == sid
        frames = stream.frames
    assert {frame.event for frame in frames} <= set(KINDS)
    assert frames[0].event == "session.changed"
    runs = [status for kind, status in about(frames, sid) if kind == "run.changed"]
    assert [status for n, status in enumerate(runs) if n == 0 or status != runs[n - 1]] == [
        "running",
        "waiting",
        "queued",
        "running",
        "complete",
    ]
    assert numbers(frames) == sorted(set(numbers(frames)))


def test_what_happens_after_the_answer_is_not_missed(server: Served) -> None:
    """P7: once the response has begun, every later change arrives, however soon it happens."""
    for n in range(15):
        with changes(server) as stream:
            sid = server.session(title=f"{n}")
            assert stream.until("session.changed").data == {"session_id": sid}
            assert len(stream.frames) == 1


def test_from_every_cursor_exactly_the_rest(server: Served) -> None:
    """L5 P7: resumed at any change, also by several clients, the feed has no gap and no duplicate."""
    with changes(server) as stream:
        for n in range(3):
            server.turn(server.session(title=f"{n}"), "hello")
        sid = server.session(title="last")
        while stream.until("session.changed").data["session_id"] != sid:
            pass
        whole = list(stream.frames)
    for at in range(len(whole) - 1):
        with changes(server, whole[at].id) as again:
            rest = [again.next() for _ in whole[at + 1 :]]
        assert rest == whole[at + 1 :]


def test_the_feed_goes_on_over_a_crash(start: Start) -> None:
    """L5 X2: a cursor of the process that was killed is good for the next one, which tells how its runs ended."""
    server = start()
    with changes(server) as stream:
        sid = server.session()
        rid = server.begin(sid, [{"say": "x"}, {"hang": True}])
        last = until_status(stream, "running")
        server.kill()
    server = start()
    with changes(server, last.id) as stream:
        assert until_status(stream, "interrupted").data["run_id"] == rid
    assert numbers(stream.frames)[0] == numbers([last])[0] + 1


RESETS = {"another generation": "gen_other-1", "a place that is still to come": "{generation}-999999999"}


@pytest.mark.parametrize("why", RESETS)
def test_a_cursor_that_is_not_of_this_feed_is_a_reset(server: Served, why: str) -> None:
    """P7: `reset` says to read the lists again; the feed goes on from its id."""
    with changes(server) as stream:
        generation = stream.place().rpartition("-")[0]
    with changes(server, RESETS[why].format(generation=generation)) as stream:
        reset = stream.next()
        assert reset is not None
        assert (reset.event, reset.data) == ("reset", {})
        sid = server.session()
        assert stream.until("session.changed").data["session_id"] == sid
    with changes(server, reset.id) as stream:
        assert stream.until("session.changed").data["session_id"] == sid


def test_a_restored_backup_is_another_generation(start: Start, tmp_path: Path) -> None:
    """P7: numbers that start again are not mistaken for the old ones."""
    server = start()
    with changes(server) as stream:
        place = stream.place()
    server.kill()
    file = tmp_path / "data" / "holdfast.db"
    Path(shutil.copy(file, file.with_name("backup"))).replace(file)
    server = start()
    with changes(server, place) as stream:
        reset = stream.next()
        assert reset is not None
        assert reset.event == "reset"
        assert (reset.id or "").rpartition("-")[0] not in ("", place.rpartition("-")[0])


def test_wrong_cursors_are_refused(server: Served) -> None:
    """P7: what the feed cannot have given out is a 422 before any stream begins."""
    for cursor in ("nonsense", "gen-x", "-", "gen-" + "9" * 40):
        server.refused("invalid", "GET", "/api/events", params={"after": cursor})
        server.refused("invalid", "GET", "/api/events", headers={"Last-Event-ID": cursor})


def test_a_store_that_is_away_ends_the_feed_and_is_a_503(start: Start) -> None:
    """P7: the stream ends, a new one is a 503, and later the client resumes at its cursor."""
    server = start(engine={"poll_interval": 0.05})
    with changes(server) as stream:
        place = stream.place()
        server.order(store_away=True)
        assert stream.rest() == []
    server.refused("storage-unavailable", "GET", "/api/events")
    server.order(store_away=False)
    sid = server.session()
    with changes(server, place) as stream:
        assert stream.until("session.changed").data["session_id"] == sid


def test_a_client_of_the_feed_that_leaves_holds_nothing(server: Served) -> None:
    """L6: twenty clients connect and disconnect while nothing happens; the server still stops at once."""
    lines = [httpx.Client(base_url=server.url, verify=False) for _ in range(20)]
    for line in lines:
        with line, line.stream("GET", "/api/events") as response:
            assert response.status_code == 200
    client = server.follow_changes()
    until(lambda: client.status, lambda status: status == 200)
    assert server.terminate() == 0
    assert client.ended() == []
