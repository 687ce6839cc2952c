"""Compare over HTTP: several attached runs are one stream."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import Frame, Stream, said, until


def pane(script: Any, **fields: Any) -> dict[str, Any]:
    return {"input": json.dumps(script), **fields}


def compare(server: Served, *panes: dict[str, Any]) -> AbstractContextManager[Stream]:
    return server.stream("POST", "/api/compare", json={"runs": list(panes)})


def of_run(frames: list[Frame], rid: str) -> list[Frame]:
    return [frame for frame in frames if frame.data.get("run_id") == rid]


def begun(stream: Stream) -> list[dict[str, str]]:
    """The panes: run, session, message and model of each."""
    panes: list[dict[str, str]] = stream.until("compare.started").data["runs"]
    return panes


def standing(name: str) -> dict[str, Any]:
    return pane([{"say": f"{name} "}, {"meet": name}, {"say": "whole"}])


def read_to_the_gates(stream: Stream, count: int) -> None:
    for _ in range(count):
        stream.until("text.delta")


def test_one_stream_has_the_events_of_all_runs(server: Served) -> None:
    """L4 L5: each frame carries its run and its number there; sorted apart they are the runs' own events."""
    scripts = [
        [{"tokens": 20, "rate": 500}],
        [{"think": "hm"}, {"call": "a", "result": 1}, {"say": "b"}],
        [{"say": "c"}],
    ]
    with compare(server, *[pane(script, model=f"m{n}") for n, script in enumerate(scripts)]) as stream:
        assert stream.response.status_code == 200
        panes = begun(stream)
        frames = stream.rest()[1:]
    assert [one["model"] for one in panes] == ["m0", "m1", "m2"]
    assert len({one["session_id"] for one in panes}) == 3
    for one in panes:
        own, alone = of_run(frames, one["run_id"]), server.events(one["run_id"])
        assert [(frame.data["seq"], frame.event) for frame in own] == [(frame.seq, frame.event) for frame in alone]
        stripped = [{k: v for k, v in frame.data.items() if k not in ("run_id", "seq")} for frame in own]
        assert stripped == [{k: v for k, v in frame.data.items() if k != "run_id"} for frame in alone]
        run = server.ended(one["run_id"])
        assert (run["status"], run["lifetime"]) == ("complete", "attached")
        assert server.answer(one["session_id"])["id"] == one["message_id"]
    assert all(frame.id is None for frame in frames)  # the merged stream has no cursor


def test_leaving_stops_every_run(server: Served) -> None:
    """L3: the client disconnects: all upstream calls are aborted, and each partial is saved once as disconnected."""
    with compare(server, *[standing(name) for name in "abcdef"]) as stream:
        panes = begun(stream)
        read_to_the_gates(stream, 6)
        assert server.order(upstreams=True) == 6
    until(lambda: server.order(upstreams=True), lambda count: count == 0)
    for name, one in zip("abcdef", panes, strict=True):
        run = until(lambda one=one: server.run(one["run_id"]), lambda run: run["ended_at"])  # type: ignore[misc]
        assert (run["status"], run["reason"]) == ("cancelled", "disconnected")
        assert said(server.answer(one["session_id"])) == f"{name} "


def test_stop_on_one_leaves_the_others(server: Served) -> None:
    """L2 L3: a cancel ends one pane; the others go on in the same stream to their end."""
    with compare(server, *[standing(name) for name in "abc"]) as stream:
        panes = begun(stream)
        read_to_the_gates(stream, 3)
        assert server.cancel(panes[1]["run_id"])["reason"] == "requested"
        assert stream.until("run.cancelled").data["run_id"] == panes[1]["run_id"]
        assert server.order(upstreams=True) == 2
        for name in "abc":
            server.order(open=name)
        frames = stream.rest()
    ends = [frame for frame in frames if frame.event in ("run.complete", "run.cancelled")]
    assert {frame.data["run_id"]: frame.event for frame in ends} == {
        panes[0]["run_id"]: "run.complete",
        panes[1]["run_id"]: "run.cancelled",
        panes[2]["run_id"]: "run.complete",
    }
    assert [said(server.answer(one["session_id"])) for one in panes] == ["a whole", "b ", "c whole"]


def test_a_pane_that_fails_or_waits_holds_up_no_other(server: Served) -> None:
    """L6: one fails, one is queued behind another run, one goes on; the stream stays open for all."""
    busy = server.session()
    first = server.stand(busy, [{"say": "x"}, {"meet": "here"}])
    with compare(server, pane([{"fail": ["provider", "No."]}]), pane("q", session_id=busy), standing("c")) as stream:
        failed, queued, going = begun(stream)
        assert stream.until("run.failed").data["run_id"] == failed["run_id"]
        server.order(reached="c")
        server.order(open="c")
        assert stream.until("run.complete").data["run_id"] == going["run_id"]
        assert server.run(queued["run_id"])["status"] == "queued"
        server.order(open="here")
        assert stream.until("run.complete").data["run_id"] == queued["run_id"]
        assert stream.next() is None
    assert server.ended(first)["status"] == "complete"


def test_a_compare_that_cannot_be_begun_leaves_nothing_running(server: Served) -> None:
    """L3: a pane that names no session is a 404 that leaves nothing; one that storage refuses stops those before it."""
    panes = [standing("a"), pane("b", session_id="ses_none")]
    server.refused("not-found", "POST", "/api/compare", {"runs": panes})
    assert server.get("/api/sessions")["items"] == server.get("/api/runs")["items"] == []
    server.order(hold=["store", "_accept"])
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(server.refused, "storage-full", "POST", "/api/compare", {"runs": [standing("a")] * 2})
        server.order(held=["store", "_accept"])
        server.order(free=0)  # the first is being stored; the second finds no room
        server.order(release=["store", "_accept"])
        asked.result()
    (run,) = until(lambda: server.get("/api/runs")["items"], lambda runs: all(run["ended_at"] for run in runs))
    assert (run["status"], run["reason"]) == ("cancelled", "disconnected")
    assert server.order(upstreams=True) == 0
    server.refused("invalid", "POST", "/api/compare", {"runs": []})
    server.refused("invalid", "POST", "/api/compare", {"runs": [pane("x")] * 13})


def test_a_moment_without_the_journal_stops_no_pane(start: Start) -> None:
    """L3: a queued pane's events cannot be read for a while: the client is still connected, so no run is cancelled."""
    server = start(engine={"poll_interval": 0.05})
    busy = server.session()
    server.stand(busy, [{"say": "x"}, {"meet": "here"}])
    with compare(server, pane("q", session_id=busy), standing("c")) as stream:
        begun(stream)
        stream.until("text.delta")
        server.order(journal_away=True)
        until(lambda: server.complaints, lambda text: "cannot read the events" in text)
        server.order(journal_away=False)
        for gate in ("here", "c"):
            server.order(open=gate)
        assert [frame.event for frame in stream.rest()].count("run.complete") == 2


def test_sessions_of_a_comparison_are_listed_apart(server: Served) -> None:
    """A comparison's sessions are in neither list until they are continued; the vote in their settings is kept."""
    body = {"runs": [pane([{"say": "a"}]), pane([{"say": "b"}])], "comparison": {"id": "c1", "blind": True}}
    with server.stream("POST", "/api/compare", json=body) as stream:
        first, second = [item["session_id"] for item in begun(stream)]
        while stream.next() is not None:
            pass
    assert server.get("/api/sessions")["items"] == []
    assert server.get("/api/sessions?archived=true")["items"] == []
    compared = {item["id"]: item["settings"] for item in server.get("/api/sessions?source=compare")["items"]}
    settings = {"source": "compare", "comparison": {"id": "c1", "blind": True}}
    assert compared == {first: settings, second: settings}
    assert server.get(f"/api/sessions/{first}")["title"] == json.dumps([{"say": "a"}])
    chosen = {"comparison": {"id": "c1", "blind": True, "best": True}}
    server.call("PATCH", f"/api/sessions/{first}", {"settings": chosen})
    assert [item["id"] for item in server.get("/api/sessions")["items"]] == [first]
    assert [item["id"] for item in server.get("/api/sessions?source=compare")["items"]] == [second]
    server.call("GET", "/api/sessions?source=other", None, 422)
