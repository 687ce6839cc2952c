"""Section C over HTTP: whatever had streamed when somebody said stop is kept."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said, shown, until

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
    """C6: cancelled by several at once and once more: each is told the same; one notice, one message."""
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


def test_cancel_racing_the_normal_end_leaves_one_end(server: Served) -> None:
    """C6: whoever is first, run, journal and message name the same end, once."""
    ends = set()
    for n in range(12):
        sid = server.session()
        rid = server.begin(sid, [{"say": "whole"}, {"meet": f"{n}"}])
        server.order(reached=f"{n}")
        with ThreadPoolExecutor(2) as both:
            cancelling = both.submit(server.cancel, rid)
            if n % 3:  # in every third the cancel comes alone
                server.order(open=f"{n}")
            run = cancelling.result()
        assert run["status"] in ("complete", "cancelled")
        assert cancels(server, rid) == [f"run.{run['status']}"]
        assert (server.answer(sid)["status"], said(server.answer(sid))) == (run["status"], "whole")
        ends.add(run["status"])
    assert "cancelled" in ends


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
    """C7: the upstream call is let go of in the middle of an await that would never have ended."""
    sid = server.session(agent=agent)
    rid = server.stand(sid, [{"say": "half "}, {"meet": "here"}, {"say": "never"}])
    assert server.order(upstreams=True) == 1
    assert server.cancel(rid)["status"] == "cancelled"
    assert server.order(upstreams=True) == 0
    server.order(open="here")
    assert said(server.answer(sid)) == "half "


@pytest.mark.parametrize("agent", ["chat", "stiff"])
def test_cancel_of_a_run_that_waits_for_a_person_denies(server: Served, agent: str) -> None:
    """C3 C6: the question is answered with deny, the tool did not run, and a late answer is told so."""
    sid = server.session(agent=agent)
    rid = server.begin(sid, [{"say": "may I? "}, {"call": "a", "asks": True}])
    with server.watch(rid) as stream:
        asked = stream.until("approval.requested").data["approval_id"]
        until(lambda: server.run(rid)["status"], lambda status: status == "waiting")
        assert server.cancel(rid)["status"] == "cancelled"
        assert stream.rest()[-1].event == "run.cancelled"
    text, tool = server.answer(sid)["parts"]
    assert (text["text"], tool["state"]) == ("may I? ", "not_run")
    assert server.effects == []
    late = server.refused("already-decided", "POST", f"/api/runs/{rid}/approvals/{asked}", {"decision": "once"})
    assert late["decision"] == "deny"


def test_cancel_of_a_queued_run_keeps_it_out_of_the_conversation(server: Served) -> None:
    """C5 C6: it never joins the branch, has one end, and holds up nobody behind it."""
    sid = server.session()
    first = server.begin(sid, [{"say": "one"}, {"meet": "here"}])
    second, third = server.begin(sid, "two"), server.begin(sid, "three")
    assert server.cancel(second)["status"] == "cancelled"
    assert cancels(server, second) == ["run.cancelled"]
    server.order(open="here")
    server.ended(first)
    server.ended(third)
    assert [said(message) for message in server.messages(sid)][1:] == ["one", "three", "three"]


def test_cancel_that_storage_holds_up_is_answered_as_requested(start: Start) -> None:
    """C6 C7: while the end cannot be saved the caller is told that the cancel is under way; the upstream is gone."""
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


def test_a_cancel_that_was_answered_outlives_the_process(start: Start) -> None:
    """C6 C8: killed right after the answer, the run is cancelled, once, with what had been shown."""
    server = start()
    sid = server.session()
    rid = server.begin(sid, [{"tokens": 100_000, "rate": 500}])
    client = server.follow(rid)
    client.until("text.delta", 5)
    run = server.cancel(rid)
    server.kill()
    seen = client.ended()
    server = start()
    assert server.run(rid) == run
    assert cancels(server, rid) == ["run.cancelled"]
    assert server.events(rid)[: len(seen)] == seen
    assert said(server.answer(sid)).startswith(shown(seen))


def test_a_cancel_that_was_not_answered_is_done_by_the_next_process(start: Start) -> None:
    """C6: stored and not yet carried out when the process is killed: the run ends as cancelled, not as interrupted."""
    server = start()
    sid = server.session()
    rid = server.stand(sid, [{"say": "half"}, {"meet": "here"}, {"hang": True}])
    server.order(hold=["journal", "append"])
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(server.http.post, f"/api/runs/{rid}/cancel")
        server.order(held=["journal", "append"])
        server.kill()
        assert asked.exception() is not None
    server = start()
    run = server.run(rid)
    assert (run["status"], run["reason"]) == ("cancelled", "requested")
    assert cancels(server, rid) == ["run.cancelled"]
    assert said(server.answer(sid)) == "half"
