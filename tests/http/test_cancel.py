"""Section C over HTTP: a cancelled run keeps everything that had streamed."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said, until

ENDINGS = ("run.complete", "run.cancelled", "run.failed", "run.interrupted")

PHASES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "C1 only reasoning": ([{"think": "hm, "}], ["reasoning"]),
    "C2 reasoning and text": ([{"think": "hm, "}, {"say": "so "}], ["reasoning", "text"]),
    "C3 tools, finished and not": (
        [{"call": "a", "result": 1}, {"call": "b", "output": ["half"], "takes": 3600}],
        ["tool", "tool"],
    ),
    "C4 tools and text": ([{"say": "first "}, {"call": "a"}, {"say": "then "}], ["text", "tool", "text"]),
    "C5 nothing": ([], []),
}


@pytest.mark.parametrize("phase", PHASES)
def test_what_had_streamed_is_kept_in_order(server: Served, phase: str) -> None:
    """C1 C2 C3 C4 C5 C8: the saved message has exactly what a client had been shown, and one cancel notice."""
    script, kinds = PHASES[phase]
    sid = server.session()
    rid = server.send(sid, [*script, {"meet": "here"}, {"hang": True}])["run"]["id"]
    with server.watch(rid) as stream:
        if phase.startswith("C3"):
            stream.until("tool.started"), stream.until("tool.started")
        else:
            server.order(reached="here")
        run = server.post(f"/api/runs/{rid}/cancel")
        assert (run["status"], run["reason"], run["cancel_requested"]) == ("cancelled", "requested", True)
        shown = stream.rest()
    assert [frame.event for frame in shown].count("run.cancelled") == 1
    message = server.answer(sid)
    assert message["status"] == "cancelled"
    assert [part["type"] for part in message["parts"]] == kinds
    assert server.get(f"/api/sessions/{sid}")["active_run"] is None
    for kind, event in (("text", "text.delta"), ("reasoning", "reasoning.delta")):
        said = "".join(frame.data["text"] for frame in shown if frame.event == event)
        assert "".join(part["text"] for part in message["parts"] if part["type"] == kind) == said
    tools = {part["call_id"]: part for part in message["parts"] if part["type"] == "tool"}
    if phase.startswith("C3"):
        assert (tools["a"]["state"], tools["a"]["result"], tools["b"]["state"]) == ("done", 1, "unknown")
        assert tools["b"]["name"] == "tool"


def cancels(server: Served, rid: str) -> list[str]:
    """What the run's journal says of its end."""
    return [frame.event for frame in server.events(rid) if frame.event in ENDINGS]


def test_two_cancels_leave_one_end(server: Served) -> None:
    """C6: cancelled by several clients at once and again: all get the same answer; one notice, one message."""
    sid = server.session()
    rid = server.stand(sid, [{"say": "half"}, {"meet": "here"}, {"hang": True}])
    with ThreadPoolExecutor(6) as clients:
        told = list(clients.map(lambda _: server.cancel(rid), range(6)))
    told.append(server.cancel(rid))
    assert {(run["status"], run["reason"], run["ended_at"]) for run in told} == {
        ("cancelled", "requested", told[0]["ended_at"])
    }
    assert cancels(server, rid) == ["run.cancelled"]
    assert [(message["role"], message["status"]) for message in server.messages(sid)] == [
        ("user", "complete"),
        ("assistant", "cancelled"),
    ]


def test_cancel_after_the_end_changes_nothing(server: Served) -> None:
    """C6: a complete run stays complete, and its message as it was."""
    sid = server.session()
    before = server.turn(sid, "whole")
    run = server.cancel(before["run_id"])
    assert (run["status"], run["cancel_requested"]) == ("complete", False)
    assert server.answer(sid) == before
    server.refused("not-found", "POST", "/api/runs/run_none/cancel")


@pytest.mark.parametrize("agent", ["chat", "stiff"])
def test_cancel_interrupts_an_await(server: Served, agent: str) -> None:
    """C7: the upstream call is aborted in the middle of an await that would never have ended."""
    sid = server.session(agent=agent)
    rid = server.stand(sid, [{"say": "half "}, {"meet": "here"}, {"say": "never"}])
    assert server.order(upstreams=True) == 1
    assert server.cancel(rid)["status"] == "cancelled"
    assert server.order(upstreams=True) == 0
    server.order(open="here")
    assert said(server.answer(sid)) == "half "


def test_cancel_that_storage_holds_up_is_answered_as_requested(start: Start) -> None:
    """C6 C7: while the end cannot be saved, the response says `cancel_requested`; the upstream call is aborted."""
    server = start(engine={"cancel_wait": 0.05})
    sid = server.session()
    rid = server.stand(sid, [{"say": "half"}, {"meet": "here"}, {"hang": True}])
    server.order(journal_away=True)
    run = server.cancel(rid)
    assert (run["status"], run["cancel_requested"]) == ("running", True)
    until(lambda: server.order(upstreams=True), lambda open_now: open_now == 0)
    server.order(journal_away=False)
    assert server.ended(rid)["status"] == "cancelled"
    assert cancels(server, rid) == ["run.cancelled"]
    assert said(server.answer(sid)) == "half"
