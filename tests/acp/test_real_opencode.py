"""Whole turns of the real opencode over the protocol, in front of a scripted model: `make test-agents`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from tests.acp.adapters import command, node_path
from tests.acp.test_real_hermes import answer_question, until_text
from tests.chat.model_server import calls
from tests.chat.questions import asked, effects
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import Start, starting
from tests.http.streams import until
from tests.upstream import Exchange, Hang, Head, Script, Upstream, delta, listening, says, sse

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]


class ForOpencode(Upstream):
    """Answers by what the newest message says. A request without tools is one for a title."""

    def script(self, exchange: Exchange) -> Script:
        if exchange.method != "POST":
            return [Head(404, {"Content-Length": "0"}, chunked=False)]
        body = exchange.json()
        last = body["messages"][-1]
        text = json.dumps(last.get("content"))
        if not body.get("tools"):
            return says("A title")
        if last["role"] == "tool":
            return says("The tool has run.")
        if "interrupted" in text:
            return says("And the rest.")
        if "hang" in text:
            return [Head(), *sse(delta(content="Half an answer. ")), Hang()]
        if "count" in text:
            return calls(("call_1", "bash", {"command": "echo ran >> effects", "description": "Counts"}))
        return says("Hello from the model.")


@pytest.fixture
def start(tmp_path: Path, chat_forker: ServerForker) -> Iterator[Start]:
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(listening(ForOpencode())) as up:
        options = {"baseURL": f"{up.url}/v1", "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "Script", "options": options, "models": {"script": {}}}
        config = {
            "autoupdate": False,
            "share": "disabled",
            "provider": {"script": provider},
            "model": "script/script",
            "small_model": "script/script",
            "permission": {"bash": "ask"},
        }
        away = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        env = {
            "HOME": str(tmp_path),
            "PATH": f"{node_path()}{os.pathsep}{os.environ['PATH']}",
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            **away,
        }
        section = {"command": command("opencode"), "args": ["acp"], "env": env}

        def make(**changes: Any) -> Served:
            return Served(chat_forker, tmp_path / "data", agents={"opencode": section}, **changes)

        with starting(make) as begin:
            yield begin


def texts(served: Served, sid: str) -> str:
    return "".join(part["text"] for part in served.answer(sid)["parts"] if part["type"] == "text")


def test_turns_of_opencode(start: Start) -> None:
    """X1, X5: opencode answers, runs a command once after permission, and goes on in its session after `kill -9` of the
    server."""
    served = start()
    sid = served.session(agent="opencode", title="A person's")
    run = served.ended(served.begin(sid, "say hello"))
    assert (run["status"], run["error"]) == ("complete", None)
    assert texts(served, sid).strip() == "Hello from the model."

    rid = served.begin(sid, "count")
    asked(served, rid)
    assert effects(served, sid) == []
    answer_question(served, rid, "once")
    assert served.ended(rid)["status"] == "complete"
    assert effects(served, sid) == ["ran"]

    rid = served.begin(sid, "hang")
    until_text(served, rid)
    served.kill()
    served = start()
    until(lambda: served.run(rid)["status"], "interrupted".__eq__)
    assert texts(served, sid) == "Half an answer. "
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    assert texts(served, sid) == "Half an answer. And the rest."
    assert effects(served, sid) == ["ran"]
