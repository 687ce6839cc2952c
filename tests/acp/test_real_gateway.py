"""Against the real gateway of Hermes (`hermes gateway`), in front of a scripted model: `make test-agents`."""

import json
import os
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.acp.test_real_hermes import (
    HERMES,
    REMOVE,
    ForHermes,
    answer_question,
    home,
    import_home,
    model,
    until_text,
)
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import Start, starting
from tests.http.streams import until

__all__ = ["home", "model"]

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]

KEY: Final = "a-key-of-the-gateway-0123456789abcdef"
COMMAND: Final = str(Path(HERMES).parent / "hermes")


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "HERMES_HOME": str(home)}


@contextmanager
def gateway_at(home: Path, port: int) -> Iterator[str]:
    environ = {**environment(home), "API_SERVER_KEY": KEY, "API_SERVER_PORT": str(port)}
    log = (home / "gateway.out").open("ab")
    with log, subprocess.Popen([COMMAND, "gateway", "run"], env=environ, cwd=home, stdout=log, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            until(lambda: _answers(url), within=90.0)
            yield url
        finally:
            process.kill()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def url(home: Path) -> Iterator[str]:
    with gateway_at(home, free_port()) as found:
        yield found


@pytest.fixture
def start(tmp_path: Path, chat_forker: ServerForker, url: str) -> Iterator[Start]:
    section = {"url": url, "api_key_env": "GATEWAY_KEY"}

    def make(**changes: Any) -> Served:
        tables = {"agents": {"gateway": section}, "environment": {"GATEWAY_KEY": KEY}}
        return Served(chat_forker, tmp_path / "data", **tables, **changes)

    with starting(make) as begin:
        yield begin


def chat_on_the_command_line(home: Path, text: str) -> str:
    """A session that Hermes' own command line made; its id."""
    environ = environment(home)
    subprocess.run([COMMAND, "chat", "-q", text], env=environ, cwd=home, check=True, capture_output=True, timeout=120)
    with closing(sqlite3.connect(home / "state.db")) as database:
        ((sid, source),) = database.execute("SELECT id, source FROM sessions").fetchall()
    assert source == "cli"
    return str(sid)


def rows(home: Path, sid: str) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(home / "state.db")) as database:
        found = database.execute(
            "SELECT role, content FROM messages WHERE session_id = ? AND role IN ('user', 'assistant') ORDER BY id",
            (sid,),
        ).fetchall()
    return [(role, text) for role, text in found if text]


def told(model: ForHermes) -> list[tuple[str, Any]]:
    """What the model was last sent, without system prompts."""
    return [(item["role"], item["content"]) for item in model.turns[-1] if item["role"] != "system"]


def test_an_imported_session_goes_on_where_it_is(start: Start, home: Path, model: ForHermes) -> None:
    """X5: a session of Hermes' command line is imported and goes on in Hermes' own session; tools ask, run once, and
    are denied; a cancel stops the run."""
    original = chat_on_the_command_line(home, "say hello")
    served = start()
    listed = {item["name"]: item for item in served.get("/api/agents")["items"]}["gateway"]
    assert (listed["available"], listed["reason"], listed["is_program"]) == (True, None, True)
    tested = served.post("/api/agents/gateway/test")
    assert (tested["ok"], tested["version"]) == (True, "0.19.0"), tested
    (sid,) = import_home(served, home)["sessions"]
    served.call("PATCH", f"/api/sessions/{sid}", {"agent": "gateway"}, expect=200)

    run = served.ended(served.begin(sid, "say hello once more"))
    assert (run["status"], run["error"]) == ("complete", None)
    assert rows(home, original) == [
        ("user", "say hello"),
        ("assistant", "Hello from the model."),
        ("user", "say hello once more"),
        ("assistant", "Hello from the model."),
    ]
    assert told(model) == rows(home, original)[:3]

    junk = home / "junk"
    junk.mkdir()
    rid = served.begin(sid, "remove the directory")
    question = answer_question(served, rid, "once")
    assert question["args"]["command"] == REMOVE
    assert "Allow once" in [option["name"] for option in question["options"]]
    assert served.ended(rid)["status"] == "complete"
    (tool,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert (tool["state"], tool["name"], tool["is_error"]) == ("done", "terminal", False)
    ran = list(home.rglob("effects")) or list(Path.cwd().glob("effects"))
    assert [file.read_text() for file in ran] == ["ran\n"]

    rid = served.begin(sid, "remove it again")
    answer_question(served, rid, "deny")
    assert served.ended(rid)["status"] == "complete"
    (tool,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert (tool["state"], [file.read_text() for file in ran]) == ("denied", ["ran\n"])

    rid = served.begin(sid, "hang, to be cancelled")
    until_text(served, rid)
    assert served.cancel(rid)["status"] == "cancelled"
    assert served.answer(sid)["parts"][-1]["text"] == "Half an answer. "
    assert served.ended(served.begin(sid, "say hello at last"))["status"] == "complete"
    assert rows(home, original)[-2:] == [("user", "say hello at last"), ("assistant", "Hello from the model.")]
    assert "remove the directory" in json.dumps(told(model))

    shown = [message["id"] for message in served.messages(sid)]
    again = import_home(served, home)
    assert (again["imported"], again["skipped"], again["sessions"]) == (0, [], [sid])
    assert [message["id"] for message in served.messages(sid)] == shown


def test_a_compacted_session_goes_on_at_its_tip(start: Start, home: Path, model: ForHermes) -> None:
    """X5: of a chain that compaction made, the newest session goes on; its rows are not touched."""
    first = chat_on_the_command_line(home, "say hello")
    with closing(sqlite3.connect(home / "state.db")) as database, database:
        names = [name for _, name, *_ in database.execute("PRAGMA table_info(sessions)") if name not in ("id", "title")]
        columns = ", ".join(names)
        database.execute(f"INSERT INTO sessions (id, {columns}) SELECT 'the_tip', {columns} FROM sessions")
        database.execute("UPDATE sessions SET end_reason = 'compression', ended_at = started_at WHERE id = ?", (first,))
        database.execute(
            "UPDATE sessions SET parent_session_id = ?, started_at = started_at + 1, end_reason = NULL, "
            "ended_at = NULL WHERE id = 'the_tip'",
            (first,),
        )
        for n, (role, said) in enumerate([("user", "Which way?"), ("assistant", "North.")]):
            insert = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('the_tip', ?, ?, ?)"
            database.execute(insert, (role, said, time.time() + n))
    before = rows(home, first)
    served = start()
    (sid,) = import_home(served, home)["sessions"]
    served.call("PATCH", f"/api/sessions/{sid}", {"agent": "gateway"}, expect=200)
    assert served.ended(served.begin(sid, "say hello"))["status"] == "complete"
    assert rows(home, "the_tip")[1:] == [
        ("assistant", "North."),
        ("user", "say hello"),
        ("assistant", "Hello from the model."),
    ]
    assert told(model)[:2] == [("user", "Which way?"), ("assistant", "North.")]
    assert rows(home, first) == before


@pytest.mark.parametrize("meanwhile", ["works", "completes"])
def test_a_kill_of_the_server(start: Start, home: Path, model: ForHermes, meanwhile: str) -> None:
    """X1, X3, X5: after `kill -9` in mid-answer what was shown is stored. A run that works on is stopped, and another
    goes on in its session; of one that has completed, the rest is shown and nothing is prompted."""
    served = start()
    sid = served.session(agent="gateway", title="A person's")
    rid = served.begin(sid, "hang here" if meanwhile == "works" else "pause here")
    until_text(served, rid)
    served.kill()
    if meanwhile == "completes":
        httpx.get(f"{model.url}/go-on")
        until(lambda: said_by_hermes(home), "Half an answer. And the end.".__eq__)
    served = start()
    until(lambda: served.run(rid)["status"], "interrupted".__eq__)
    assert [part["text"] for part in served.answer(sid)["parts"]] == ["Half an answer. "]
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    run = served.ended(again)
    assert (run["status"], run["error"]) == ("complete", None)
    rest = "And the rest." if meanwhile == "works" else "And the end."
    assert [part["text"] for part in served.answer(sid)["parts"]] == [f"Half an answer. {rest}"]
    assert len(model.turns) == (2 if meanwhile == "works" else 1)
    with closing(sqlite3.connect(home / "state.db")) as database:
        assert len(database.execute("SELECT DISTINCT session_id FROM messages").fetchall()) == 1


def said_by_hermes(home: Path) -> str:
    with closing(sqlite3.connect(home / "state.db")) as database:
        last = "SELECT content FROM messages WHERE role = 'assistant' ORDER BY id DESC LIMIT 1"
        found = database.execute(last).fetchone()
    return "" if found is None else str(found[0])
