"""Against the real Hermes Agent: `make test-agents`, which installs it apart, in front of a scripted model."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from tests.acp.test_turns import _lives as lives
from tests.chat.questions import asked
from tests.chat.stage import calls
from tests.http.client import Served
from tests.http.conftest import Start, starting
from tests.http.streams import until
from tests.nursery import Nursery
from tests.upstream import Exchange, Hang, Head, Script, Upstream, answers, delta, listening, says, sse

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]

HERMES = os.environ.get("HOLDFAST_HERMES", "")


class ForHermes(Upstream):
    """Answers by what the newest message says. A request without tools is one for a title."""

    def script(self, exchange: Exchange) -> Script:
        if exchange.method != "POST":
            return [Head(404, {"Content-Length": "0"}, chunked=False)]
        body = exchange.json()
        if not body.get("stream") or not body.get("tools"):
            return _whole("A title")
        last = body["messages"][-1]
        text = json.dumps(last.get("content"))
        if last["role"] == "tool":
            return says("The tool has run.")
        if "interrupted" in text:
            return says("And the rest.")
        if "hang" in text:
            return [Head(), *sse(delta(content="Half an answer. ")), Hang()]
        if "remove" in text:
            return calls(("call_1", "terminal", {"command": "rm -rf ./junk"}))
        return says("Hello from the model.")


def _whole(text: str) -> Script:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return answers(200, {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(listening(ForHermes())) as up:
        yield f"{up.url}/v1"


@pytest.fixture
def start(tmp_path: Path, chat_nursery: Nursery, model: str) -> Iterator[Start]:
    home = tmp_path / "hermes"
    home.mkdir()
    settings = {"provider": "custom", "base_url": model, "api_key": "sk-none", "default": "script"}
    (home / "config.yaml").write_text(json.dumps({"model": settings}))
    section = {"command": HERMES, "args": [], "env": {"HERMES_HOME": str(home), "HOME": str(home)}}

    def make(**changes: Any) -> Served:
        return Served(chat_nursery, tmp_path / "data", agents={"hermes": section}, **changes)

    with starting(make) as begin:
        yield begin


def texts(served: Served, sid: str) -> list[str]:
    return [part["text"] for part in served.answer(sid)["parts"] if part["type"] == "text"]


def test_a_prompt_a_tool_with_approval_a_cancel_and_a_kill(start: Start) -> None:
    """X5: Hermes answers, asks before it removes something, is cancelled, loses its process and the server, and goes on
    each time in the session it had; what is shown is what is stored."""
    served = start()
    tested = served.post("/api/agents/hermes/test", timeout=120.0)
    assert tested["ok"], tested
    sid = served.session(agent="hermes", title="A person's")
    rid = served.begin(sid, "say hello")
    run = served.ended(rid)
    assert (run["status"], run["error"]) == ("complete", None)
    assert texts(served, sid) == ["Hello from the model."]

    junk = served.data_dir / "workspaces" / sid / "junk"
    junk.mkdir()
    rid = served.begin(sid, "remove the directory")
    question = asked(served, rid)
    assert "Allow once" in [option["name"] for option in question["options"]]
    assert question["expires_at"] is not None
    assert junk.exists()
    answer = {"decision": "once", "option": "Allow once"}
    served.post(f"/api/runs/{rid}/approvals/{question['approval_id']}", answer)
    assert served.ended(rid)["status"] == "complete"
    assert not junk.exists()
    (tool,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert tool["state"] == "done"

    rid = served.begin(sid, "hang, to be cancelled")
    with served.watch(rid) as stream:
        stream.until("text.delta")
    assert served.cancel(rid)["status"] == "cancelled"
    assert texts(served, sid)[0].startswith("Half an answer.")

    rid = served.begin(sid, "hang, to lose the program")
    with served.watch(rid) as stream:
        stream.until("text.delta")
    pids = _children(served.process.pid)
    os.kill(pids[-1], 9)
    run = served.ended(rid)
    assert (run["status"], run["error"]["code"]) == ("failed", "agent-gone")
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    assert "".join(texts(served, sid)) == "Half an answer. And the rest."

    rid = served.begin(sid, "hang, to lose the server")
    with served.watch(rid) as stream:
        stream.until("text.delta")
    pids = _children(served.process.pid)
    served.kill()
    until(lambda: not any(lives(pid) for pid in pids))
    served = start()
    run = until(lambda: served.run(rid), lambda run: run["status"] == "interrupted")
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    assert "".join(texts(served, sid)) == "Half an answer. And the rest."


def _children(pid: int) -> list[int]:
    """The program's processes, from the subreaper down."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_children(int(child))]
    return found
