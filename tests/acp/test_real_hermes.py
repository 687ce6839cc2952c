"""Against the real Hermes Agent: `make test-agents`, which installs it apart, in front of a scripted model.

What Hermes keeps in its `state.db` is compared with what we show. It differs only in this:

- Hermes strips the text of an answer, and its ACP adapter puts blank lines before text that follows a tool.
- A tool has another id and name over ACP; its command is the same.
- The part of an answer that a killed Hermes had sent is lost to it. We keep it, and tell it in the prompt with which
  the run continues: that is a user's row in `state.db`, and no message of ours."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from anyio.from_thread import start_blocking_portal

from tests.acp.test_late_approvals import NO_ANSWER
from tests.acp.test_turns import _lives as lives
from tests.chat.model_server import calls
from tests.chat.questions import asked, effects
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import Start, starting
from tests.http.streams import until
from tests.upstream import End, Exchange, Hang, Head, PauseAt, Script, Upstream, answers, delta, listening, says, sse

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]

HERMES: Final = os.environ.get("HOLDFAST_HERMES", "")
REMOVE: Final = "echo ran >> effects; rm -rf ./junk"
STAY: Final = f"{REMOVE}; sleep 600"
_DAY: Final = 86_400.0


class ForHermes(Upstream):
    """Answers by what the newest message says. A request without tools is one for a title."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[list[Any]] = []  # The messages of each request that is no request for a title

    def script(self, exchange: Exchange) -> Script:
        if exchange.path == "/go-on":
            self.gate("half").open.set()
        if exchange.method != "POST":
            return [Head(404, {"Content-Length": "0"}, chunked=False)]
        body = exchange.json()
        if not body.get("stream") or not body.get("tools"):
            return _whole("A title")
        self.turns.append(body["messages"])
        last = body["messages"][-1]
        text = json.dumps(last.get("content"))
        asked = json.dumps([message["content"] for message in body["messages"] if message["role"] == "user"][-1])
        is_broken = "break down" in asked and "hello" not in asked  # Hermes adds the next prompt to one that failed
        if is_broken and (last["role"] == "tool" or "at once" in asked):
            return answers(400, {"error": {"message": "the scripted model is broken", "type": "invalid_request_error"}})
        if last["role"] == "tool":
            return says("The tool has run.")
        if is_broken:
            return calls(("call_1", "terminal", {"command": "echo looked"}), text="I look. ")
        if "count" in text:
            used = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            return [
                Head(),
                *sse(delta(content="1"), delta(finish="stop"), {"choices": [], "usage": used}, "[DONE]"),
                End(),
            ]
        if "interrupted" in text:
            return says("And the rest.")
        if "hang" in text:
            return [Head(), *sse(delta(content="Half an answer. ")), Hang()]
        if "pause" in text:
            rest = sse(delta(content="And the end."), delta(finish="stop"), "[DONE]")
            return [Head(), *sse(delta(content="Half an answer. ")), PauseAt("half"), *rest, End()]
        if "remove" in text:
            return calls(("call_1", "terminal", {"command": STAY if "stay" in text else REMOVE}))
        return says("Hello from the model.")


def _whole(text: str) -> Script:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return answers(200, {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


@pytest.fixture
def model() -> Iterator[ForHermes]:
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(listening(ForHermes())) as up:
        yield up


@pytest.fixture
def home(tmp_path: Path, model: ForHermes) -> Path:
    path = tmp_path / "hermes"
    path.mkdir()
    settings = {"provider": "custom", "base_url": f"{model.url}/v1", "api_key": "sk-none", "default": "script"}
    (path / "config.yaml").write_text(json.dumps({"model": settings}))
    return path


@pytest.fixture
def start(tmp_path: Path, chat_forker: ServerForker, home: Path) -> Iterator[Start]:
    section = {"command": HERMES, "args": [], "env": {"HERMES_HOME": str(home), "HOME": str(home)}}

    def make(**changes: Any) -> Served:
        return Served(chat_forker, tmp_path / "data", agents={"hermes": section}, **changes)

    with starting(make) as begin:
        yield begin


Outline = list[tuple[str, str]]
"""Roles and texts; a tool is its command."""


def outline(messages: list[Any]) -> Outline:
    """The messages of a session of ours."""
    found: Outline = []
    for message in messages:
        for part in message["parts"]:
            if part["type"] == "tool":
                found.append(("tool", part["args"]["command"]))
            elif part["text"].strip():
                found.append((message["role"], part["text"].strip()))
    return found


def kept_by_hermes(home: Path) -> Outline:
    """The rows in `state.db`, which are of one session: a test of the agent leaves an empty one."""
    found: Outline = []
    with closing(sqlite3.connect(home / "state.db")) as database:
        rows = database.execute("SELECT role, content, tool_calls, active FROM messages ORDER BY id").fetchall()
        assert len(database.execute("SELECT DISTINCT session_id FROM messages").fetchall()) == 1
    for role, content, tool_calls, active in rows:
        assert active == 1
        if content and role != "tool":
            found.append((role, content))
        for call in json.loads(tool_calls or "[]"):
            found.append(("tool", json.loads(call["function"]["arguments"])["command"]))
    return found


def answer_question(served: Served, rid: str, decision: str) -> Any:
    question = asked(served, rid)
    served.post(f"/api/runs/{rid}/approvals/{question['approval_id']}", {"decision": decision})
    return question


def until_text(served: Served, rid: str) -> None:
    with served.watch(rid) as stream:
        stream.until("text.delta")


def test_a_prompt_a_tool_with_approval_a_denial_and_a_cancel(start: Start, home: Path) -> None:
    """X5: Hermes answers, asks before it removes something, does what was allowed once and what was denied never, and
    is cancelled; what we show is what it keeps."""
    served = start()
    tested = served.post("/api/agents/hermes/test", timeout=120.0)
    assert (tested["ok"], tested["version"]) == (True, "0.19.0"), tested
    sid = served.session(agent="hermes", title="A person's")
    run = served.ended(served.begin(sid, "say hello"))
    assert (run["status"], run["error"]) == ("complete", None)

    junk = served.data_dir / "workspaces" / sid / "junk"
    junk.mkdir()
    rid = served.begin(sid, "remove the directory")
    question = asked(served, rid)
    assert "Allow once" in [option["name"] for option in question["options"]]
    assert question["expires_at"] is not None
    assert (junk.exists(), effects(served, sid)) == (True, [])
    answer_question(served, rid, "once")
    assert served.ended(rid)["status"] == "complete"
    assert (junk.exists(), effects(served, sid)) == (False, ["ran"])
    (tool,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert tool["state"] == "done"

    rid = served.begin(sid, "remove it again")
    answer_question(served, rid, "deny")
    assert served.ended(rid)["status"] == "complete"
    (tool,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert (tool["state"], effects(served, sid)) == ("denied", ["ran"])

    rid = served.begin(sid, "hang, to be cancelled")
    until_text(served, rid)
    assert served.cancel(rid)["status"] == "cancelled"
    said = outline(served.messages(sid))
    assert said[-1] == ("assistant", "Half an answer.")
    assert until(lambda: kept_by_hermes(home), said.__eq__) == said


POINTS: Final = {
    # What is asked; how far it goes; what was shown; the tool's state; what has run
    "in an answer": ("hang here", ["Half an answer. "], [], []),
    "at a question": ("remove it", [], ["unknown"], []),  # it was announced, so it may have begun
    "in a tool": ("remove it and stay", [], ["unknown"], ["ran"]),
}


@pytest.mark.parametrize("victim", ["agent", "server"])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill(start: Start, home: Path, model: ForHermes, victim: str, point: str) -> None:
    """X1, X3, X5: after `kill -9` what was shown is stored, no process is left, the run continues in Hermes' session,
    and nothing ran twice or without permission."""
    text, shown, states, ran = POINTS[point]
    served = start()
    sid = served.session(agent="hermes", title="A person's")
    served.ended(served.begin(sid, "say hello"))
    rid = served.begin(sid, text)
    if point == "in an answer":
        until_text(served, rid)
    else:
        asked(served, rid)
    if point == "in a tool":
        answer_question(served, rid, "once")
        until(lambda: effects(served, sid), ["ran"].__eq__)
    pids = _children(served.process.pid)
    if victim == "agent":
        os.kill(_hermes(pids), 9)
        assert served.ended(rid)["error"]["code"] == "agent-gone"
    else:
        served.kill()
        until(lambda: not any(lives(pid) for pid in pids))
        served = start()
        until(lambda: served.run(rid)["status"], "interrupted".__eq__)
    parts = served.answer(sid)["parts"]
    assert [part["text"] for part in parts if part["type"] == "text"] == shown
    assert [part["state"] for part in parts if part["type"] == "tool"] == states
    before = outline(served.messages(sid))
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    assert outline(served.messages(sid))[-1] == ("assistant", "".join([*shown, "And the rest."]))
    assert effects(served, sid) == ran
    assert not any(lives(pid) for pid in pids if pid not in _children(served.process.pid))
    # The half answer is lost to Hermes, which has what it was told instead.
    *kept, prompt, rest = kept_by_hermes(home)
    lost = 1 if shown else 0
    assert [item for item in kept if item[0] != "tool"] == [item for item in before if item[0] != "tool"][
        : -lost or None
    ]
    assert prompt[0] == "user"
    assert all(piece in prompt[1] for piece in ("was interrupted", text, *shown))
    assert rest == ("assistant", "And the rest.")
    # Hermes had its session back: the model was sent the first turn by Hermes, not by us.
    sent = [item["content"] for item in model.turns[-1] if item["role"] == "assistant" and item["content"]]
    assert sent[:1] == ["Hello from the model."]
    assert "conversation" not in prompt[1]


def test_a_call_that_nobody_answered_is_allowed_later(start: Start, model: ForHermes) -> None:
    """X5: the question counts down the minute after which Hermes denies by itself, which no setting of it changes; then
    the journal has that nobody answered. Allowed later, after a restart, Hermes asks for the same command again and
    runs it once, without another question."""
    served = start()
    sid = served.session(agent="hermes", title="A person's")
    rid = served.begin(sid, "remove it")
    question = asked(served, rid)
    assert 40 < question["expires_at"] / 1000 - time.time() < 60
    until(lambda: served.run(rid)["status"], "complete".__eq__, within=90.0)
    (tool,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert (tool["state"], tool["result"]) == ("denied", NO_ANSWER)
    assert effects(served, sid) == []
    served.terminate()
    served = start()
    again = served.post(f"/api/runs/{rid}/continue", {"allow": [tool["call_id"]]}, expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    assert "approval.requested" not in [frame.event for frame in served.events(again)]
    tools = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert [(part["state"], part["args"]["command"]) for part in tools] == [("denied", REMOVE), ("done", REMOVE)]
    assert tools[0]["result"] == f"{NO_ANSWER} You allowed it later."
    assert effects(served, sid) == ["ran"]
    assert "The user now allows it" in json.dumps(model.turns[-2])


@pytest.mark.parametrize("point", ["at once", "after a tool"])
def test_a_model_that_breaks_down_is_a_failed_run(start: Start, point: str) -> None:
    """E4: Hermes ends such a turn like any other, with the reason as its answer if it has not said anything, or just
    stops. The run has failed, keeps what was shown, and the next turn is answered."""
    served = start()
    sid = served.session(agent="hermes", title="A person's")
    run = served.ended(served.begin(sid, f"break down {point}"))
    assert (run["status"], run["error"]["code"]) == ("failed", "agent"), run
    parts = served.answer(sid)["parts"]
    if point == "at once":
        assert "the scripted model is broken" in run["error"]["message"]
    else:
        assert "gave no reason" in run["error"]["message"]
        assert [part["state"] for part in parts if part["type"] == "tool"] == ["done"]
    assert served.ended(served.begin(sid, "say hello"))["status"] == "complete"
    assert served.answer(sid)["parts"][0]["text"] == "Hello from the model."


def test_each_turn_has_its_own_usage(start: Start) -> None:
    """X4: Hermes adds up what it used, over its turns; the journal has the difference, also after a command of Hermes
    and a new process."""
    served = start()
    sid = served.session(agent="hermes", title="A person's")

    def tokens(text: str) -> tuple[str, int, int]:
        run = served.ended(served.begin(sid, text))
        usage = run["usage"] or {"input_tokens": 0, "output_tokens": 0}
        return run["status"], usage["input_tokens"], usage["output_tokens"]

    assert [tokens("count this") for _ in range(3)] == [("complete", 100, 10)] * 3
    assert tokens("/help") == ("complete", 0, 0)
    assert tokens("count this") == ("complete", 100, 10)
    served.terminate()
    served = start()
    assert [tokens("count this") for _ in range(2)] == [("complete", 100, 10)] * 2


def test_the_next_day(start: Start, home: Path, model: ForHermes) -> None:
    """X5: with new processes of the server and of Hermes, and rows that are a day old, the chat goes on in Hermes'
    session; and `holdfast import` reads the real `state.db` as the same conversation."""
    served = start()
    sid = served.session(agent="hermes", title="A person's")
    served.ended(served.begin(sid, "say hello"))
    rid = served.begin(sid, "remove it")
    answer_question(served, rid, "once")
    served.ended(rid)
    pids = _children(served.process.pid)
    served.terminate()
    until(lambda: not any(lives(pid) for pid in pids))
    with closing(sqlite3.connect(home / "state.db")) as database, database:
        database.execute("UPDATE sessions SET started_at = started_at - ?", (_DAY,))
        database.execute("UPDATE messages SET timestamp = timestamp - ?", (_DAY,))
    served = start()
    assert served.ended(served.begin(sid, "say hello again"))["status"] == "complete"
    said = outline(served.messages(sid))
    assert kept_by_hermes(home) == said
    sent = [(item["role"], item["content"]) for item in model.turns[-1] if item["role"] in ("user", "assistant")]
    assert [item for item in sent if item[1]] == [item for item in said[:-1] if item[0] != "tool"]

    first, second = (import_home(served, home) for _ in range(2))
    assert (first["imported"], first["messages"], first["skipped"]) == (1, 6, [])
    assert (second["imported"], second["unchanged"], second["messages"]) == (0, 1, 0)
    assert outline(served.messages(first["sessions"][0])) == said


def import_home(served: Served, home: Path) -> Any:
    command = [sys.executable, "-m", "holdfast", "import", "--from", "hermes", "--json", "--data-dir"]
    done = subprocess.run([*command, str(served.data_dir), str(home)], check=True, capture_output=True)
    return json.loads(done.stdout)


def _children(pid: int) -> list[int]:
    """The processes below one."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_children(int(child))]
    return found


def _hermes(pids: list[int]) -> int:
    """The process of Hermes itself: its script is the first argument of the interpreter."""
    (found,) = [pid for pid in pids if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:2] == [HERMES.encode()]]
    return found
