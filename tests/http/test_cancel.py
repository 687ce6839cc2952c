"""Section C over HTTP: whatever had streamed when somebody said stop is kept."""

from typing import Any

import pytest

from tests.http.client import Served

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
