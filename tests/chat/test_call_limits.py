"""Answers that ask for too much: too many calls, and arguments that are nested too deeply or too large."""

import json
import time
from typing import Any

import pytest

from holdfast.agents.chat.requested_calls import MAX_CALLS
from tests.chat.model_server import ScriptedModelServer, calls
from tests.http.client import Served
from tests.http.streams import said
from tests.upstream import End, Head, Script, delta, says, sse


def raw_call(arguments: str) -> Script:
    piece = {"index": 0, "id": "deep", "function": {"name": "list_files", "arguments": arguments}}
    return [Head(), *sse(delta(tool_calls=[piece]), delta(finish="tool_calls"), "[DONE]"), End()]


def tool_parts(message: Any) -> list[Any]:
    return [part for part in message["parts"] if part["type"] == "tool"]


@pytest.mark.parametrize("same_id", [False, True])
def test_an_answer_with_thousands_of_calls_is_cut_and_the_model_told(
    shared: Served, up: ScriptedModelServer, same_id: bool
) -> None:
    """E1: of 8,000 calls in one answer the first are run, the next is refused with the reason, and the run goes on."""
    name = f"eager-{same_id}"
    wanted = [("same" if same_id else f"c{n}", "no_such_tool", {"n": n}) for n in range(8_000)]
    model = up.play(name, calls(*wanted), says("Done."))
    sid = shared.session()
    began = time.monotonic()
    rid = shared.begin(sid, "Go", model=model)
    run = shared.ended(rid)
    took = time.monotonic() - began
    _, answer = shared.messages(sid)
    parts = tool_parts(answer)
    assert (run["status"], said(answer), len(parts)) == ("complete", "Done.", MAX_CALLS + 1)
    assert all(part["is_error"] for part in parts)
    assert f"can make {MAX_CALLS} calls" in parts[-1]["result"]
    told = [message["content"] for message in up.asked(name, 2)["messages"] if message["role"] == "tool"]
    assert len(told) == MAX_CALLS + 1
    assert "make them in your next answer" in told[-1]
    assert took < 15, "8,000 calls took 23 s before they were limited"


@pytest.mark.parametrize("twice", [False, True], ids=["", "encoded twice"])
@pytest.mark.parametrize("depth", [150, 400, 900, 5_000, 100_000])
def test_deeply_nested_arguments_are_refused_and_the_session_goes_on(
    shared: Served, up: ScriptedModelServer, depth: int, twice: bool
) -> None:
    """E1: the model is told, and later turns of the session, which send the call again, succeed."""
    name = f"nesting-{depth}-{twice}"
    arguments = '{"path": ' + "[" * depth + "]" * depth + "}"
    model = up.play(name, raw_call(json.dumps(arguments) if twice else arguments), says("Done."))
    sid = shared.session()
    rid = shared.begin(sid, "Go", model=model)
    run = shared.ended(rid)
    assert (run["status"], run["error"]) == ("complete", None)
    _, answer = shared.messages(sid)
    (part,) = tool_parts(answer)
    assert (part["state"], part["is_error"], said(answer)) == ("done", True, "Done.")
    assert shared.ended(shared.begin(sid, "And now?", model=model))["status"] == "complete"
    assert said(shared.messages(sid)[-1]) == "Done."
