"""Runs and sessions: lists, journals, searches, for people and for programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal, as_json, holdfast, ok
from tests.http.client import Served
from tests.http.conftest import Start

SCRIPT = json.dumps([{"say": "high tide"}, {"call": "c1", "name": "search", "args": {"q": 1}}, {"say": "at six"}])


def send(server: Served, text: str) -> dict[str, Any]:
    sid = server.call("POST", "/api/sessions", {"title": "Tides"})["id"]
    run: dict[str, Any] = server.call("POST", f"/api/sessions/{sid}/runs", {"input": text}, 202)["run"]
    return run


def ended(server: Served, rid: str) -> None:
    with server.http.stream("GET", f"/api/runs/{rid}/events") as stream:
        for _ in stream.iter_bytes():
            pass


def test_lists_for_people_and_for_programs(server: Served) -> None:
    """Every list has a plain form with tabs where there is no terminal, and JSON."""
    run = send(server, SCRIPT)
    ended(server, run["id"])
    data = server.data_dir
    [listed] = as_json("runs", "list", "--status", "complete", data=data)
    assert listed["id"] == run["id"]
    assert ok("runs", "list", data=data).split("\t")[:2] == [run["id"], "complete"]
    assert as_json("runs", "list", "--status", "running", data=data) == []
    assert ok("sessions", "list", data=data).startswith(f"{run['session_id']}\t")
    [hit] = as_json("sessions", "search", "high", "tide", data=data)
    assert hit["id"] == run["session_id"]
    assert as_json("sessions", "search", "nothing", data=data) == []
    assert as_json("runs", "show", run["id"], data=data)["status"] == "complete"
    assert "high tide" in ok("sessions", "show", run["session_id"], data=data)


@pytest.mark.parametrize("width", [30, 60, 100])
def test_a_list_fits_the_terminal(server: Served, width: int) -> None:
    """However narrow it is: no line is longer but an id, which is never cut; a long title is."""
    run = send(server, "word " * 30)
    ended(server, run["id"])
    server.call("PATCH", f"/api/sessions/{run['session_id']}", {"title": "A title that goes on and on " * 5})
    for command, named in ((["sessions", "list"], run["session_id"]), (["runs", "list"], run["id"])):
        with Terminal(*command, data=server.data_dir, width=width) as terminal:
            assert terminal.end() == 0
        lines = [line.rstrip() for line in terminal.seen.splitlines()]
        assert any(named in line for line in lines)
        assert all(len(line) <= width or line == named for line in lines), lines


def test_a_list_is_as_long_as_asked(server: Served) -> None:
    """More than a page is fetched page by page; `--limit` is kept."""
    for n in range(5):
        server.call("POST", "/api/sessions", {"title": f"s{n}"})
    titles = [item["title"] for item in as_json("sessions", "list", "--limit", "3", data=server.data_dir)]
    assert titles == ["s4", "s3", "s2"]


def test_replay_is_the_journal(server: Served) -> None:
    """L5: from the start, or after a cursor, exactly the events there are."""
    run = send(server, SCRIPT)
    ended(server, run["id"])
    lines = [json.loads(line) for line in ok("runs", "replay", run["id"], "--json", data=server.data_dir).splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert (lines[0]["event"], lines[-1]["event"]) == ("run.started", "run.complete")
    rest = ok("runs", "replay", run["id"], "--json", "--after", "2", data=server.data_dir)
    assert [json.loads(line) for line in rest.splitlines()] == lines[2:]
    assert "text.delta" in ok("runs", "replay", run["id"], data=server.data_dir)


def test_replay_of_an_open_run_ends_and_follow_goes_on(server: Served) -> None:
    """`replay` prints what is there now; `follow` waits for the rest."""
    run = send(server, json.dumps([{"say": "one"}, {"meet": "gate"}, {"say": "two"}]))
    server.order(reached="gate")
    assert "two" not in ok("runs", "replay", run["id"], data=server.data_dir)
    with Terminal("runs", "follow", run["id"], data=server.data_dir) as terminal:
        terminal.until("text=one")
        server.order(open="gate")
        terminal.until("text=two")
        terminal.until("run.complete")
        assert terminal.end() == 0


def test_follow_survives_the_server(start: Start) -> None:
    """L5: a server that is killed and comes back: each event once, and the terminal one."""
    server = start()
    run = send(server, json.dumps([{"tokens": 50}, {"hang": True}]))
    with Terminal("runs", "follow", run["id"], "--json", data=server.data_dir) as terminal:
        terminal.until("t49 ")
        server.kill()
        terminal.until("The server is gone.")
        start()
        assert terminal.end() == 0
    events = [json.loads(line) for line in terminal.seen.splitlines() if line.startswith("{")]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["event"] == "run.interrupted"


def test_without_a_server_a_killed_ones_runs_are_settled(start: Start) -> None:
    """X2: `server.json` of a killed server is recognised as stale; the directory is opened, and nothing runs."""
    server = start()
    run = send(server, json.dumps([{"say": "kept"}, {"hang": True}]))
    with server.http.stream("GET", f"/api/runs/{run['id']}/events") as stream:
        next(chunk for chunk in stream.iter_text() if "kept" in chunk)
    server.kill()
    assert (server.data_dir / "server.json").exists()
    assert as_json("runs", "show", run["id"], data=server.data_dir)["status"] == "interrupted"
    assert "kept" in ok("sessions", "show", run["session_id"], data=server.data_dir)


def test_looking_without_a_server_executes_nothing(start: Start, tmp_path: Path) -> None:
    """A3: what waits for a person and what is queued behind it is the same after commands that only look, and goes on
    when there is a server again."""
    server = start()
    run = send(server, json.dumps([{"call": "c1", "name": "shell", "asks": True}, {"say": "done"}]))
    with server.http.stream("GET", f"/api/runs/{run['id']}/events") as stream:
        next(chunk for chunk in stream.iter_text() if "approval.requested" in chunk)
    queued = server.call("POST", f"/api/sessions/{run['session_id']}/runs", {"input": "next"}, 202)["run"]
    server.kill()
    data = server.data_dir
    ok("sessions", "list", data=data)
    ok("export", "--output", tmp_path / "all.jsonl", data=data)
    ok("backup", tmp_path / "copy", data=data)
    statuses = {item["id"]: item["status"] for item in as_json("runs", "list", data=data)}
    assert statuses == {run["id"]: "waiting", queued["id"]: "queued"}
    again = start()
    [asked] = [event for event in _events(again, run["id"]) if event["event"] == "approval.requested"]
    where = f"/api/runs/{run['id']}/approvals/{asked['data']['approval_id']}"
    again.call("POST", where, {"decision": "once"}, 200)
    ended(again, run["id"])
    ended(again, queued["id"])
    assert {item["status"] for item in as_json("runs", "list", data=data)} == {"complete"}


def _events(server: Served, rid: str) -> list[dict[str, Any]]:
    lines = ok("runs", "replay", rid, "--json", data=server.data_dir).splitlines()
    return [json.loads(line) for line in lines]


def test_ctrl_c_ends_a_command(server: Served) -> None:
    """Whatever it waits for: exit code 130 and no more words. The run goes on."""
    run = send(server, json.dumps([{"say": "one"}, {"hang": True}]))
    with Terminal("runs", "follow", run["id"], data=server.data_dir) as terminal:
        terminal.until("text=one")
        terminal.interrupt()
        assert terminal.end() == 130
        assert "Traceback" not in terminal.seen
    assert as_json("runs", "show", run["id"], data=server.data_dir)["status"] == "running"


def test_models_are_listed(server: Served) -> None:
    """Whatever the server says there is; a scripted one has none."""
    assert as_json("models", "list", data=server.data_dir) == {"items": [], "default": None}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["runs", "show", "run_none"], 1, "There is no run with the id 'run_none'"),
        (["runs", "replay", "../sessions"], 1, "Not Found"),
        (["sessions", "show", "ses_none"], 1, "There is no session"),
        (["chat", "--session", "ses_none", "hello"], 1, "There is no session"),
        (["runs", "list", "--status", "sleeping"], 1, "'sleeping' is none"),
        (["runs", "list", "--limit", "0"], 2, "--limit"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_refusals_say_what_and_have_a_code(server: Served, arguments: list[str], code: int, said: str) -> None:
    """One line on stderr, nothing on stdout, and an exit code that means something."""
    done = holdfast(*arguments, data=None if code == 2 and arguments[0] == "nonsense" else server.data_dir)
    assert (done.returncode, done.stdout) == (code, b""), done.stderr.decode()
    assert said in done.stderr.decode()
