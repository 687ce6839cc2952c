"""Lifetimes as the upstream sees them: who leaves, and whose connection is closed for it."""

from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.chat.questions import begin, told
from tests.http.conftest import Start
from tests.http.streams import said
from tests.upstream import Hang, Head, Script, delta, says, sse

HALF: Script = [Head(), *sse(delta(content="Half an ")), Hang()]


def test_shutdown_closes_the_upstream_and_keeps_the_partial(start: Start, up: ScriptedModelServer) -> None:
    """L2 X3 X5: a run that outlives the drain is interrupted with its partial, and can be continued after a restart."""
    up.play("shutdown", HALF, says("answer."))
    served = start(drain=0.1)
    sid, rid = begin(served, "shutdown", "Hello")
    with served.watch(rid) as stream:
        stream.until("text.delta")
    assert served.terminate() == 0
    up.closed("shutdown")
    served = start()
    run = served.run(rid)
    assert (run["status"], run["reason"]) == ("interrupted", "shutdown")
    served.ended(served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"])
    assert said(served.answer(sid)) == "Half an answer."


@pytest.mark.parametrize(
    ("kind", "flags"),
    [("llamacpp", {}), ("vllm", {"continue_final_message": True, "add_generation_prompt": False})],
)
def test_partial_is_prefilled_where_the_server_can(
    kind: str, flags: dict[str, Any], start: Start, up: ScriptedModelServer
) -> None:
    """X5: a server that goes on from the assistant's own words is given them last, without an instruction."""
    model = f"prefill {kind}"
    up.play(model, HALF, says("answer."))
    providers = {"own": {"kind": kind, "base_url": up.url, "models": [model]}}
    served = start(more={"providers": providers})
    sid = served.session(title="A person's", model=f"own/{model}")
    rid = served.begin(sid, "Hello")
    with served.watch(rid) as stream:
        stream.until("text.delta")
    served.kill()
    served = start(more={"providers": providers})
    served.ended(served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"])
    assert said(served.answer(sid)) == "Half an answer."
    asked = up.asked(model, 2)
    assert told(asked) == [("user", "Hello"), ("assistant", "Half an ")]
    assert {name: asked[name] for name in flags} == flags
