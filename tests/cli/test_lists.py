"""`holdfast runs` and `holdfast sessions`, as text and as JSON."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.terminal import count_of, format_age
from tests.cli.terminal import Terminal, as_json, ok, refused
from tests.http.client import Served
from tests.http.conftest import Start

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCRIPT = [{"say": "high tide"}, {"call": "c1", "name": "search", "args": {"q": 1}}, {"say": "at six"}]


def send(server: Served, script: Any) -> dict[str, Any]:
    run: dict[str, Any] = server.send(server.session(title="Tides"), script)["run"]
    return run


def test_lists_for_people_and_for_programs(shared: Served) -> None:
    """Every list prints tab-separated fields if the output is not a terminal, or JSON."""
    run = send(shared, SCRIPT)
    shared.ended(run["id"])
    data = shared.data_dir
    assert as_json("runs", "list", "--status", "complete", data=data)[0]["id"] == run["id"]
    assert ok("runs", "list", data=data).split("\t")[:2] == [run["id"], "complete"]
    assert ok("runs", "list", data=data).splitlines()[0].endswith("\tTides")
    assert run["id"] not in ok("runs", "list", "--status", "running", data=data)
    assert ok("sessions", "list", data=data).startswith(f"{run['session_id']}\t")
    assert as_json("sessions", "search", "high", "tide", data=data)[0]["id"] == run["session_id"]
    assert as_json("sessions", "search", "sextant", data=data) == []
    assert as_json("runs", "show", run["id"], data=data)["status"] == "complete"
    assert "high tide" in ok("sessions", "show", run["session_id"], data=data)


@pytest.mark.parametrize("width", [30, 60, 100])
def test_a_list_fits_the_terminal(shared: Served, width: int) -> None:
    """At any width only an id, which is never truncated, may be longer than a line."""
    run = send(shared, "word " * 30)
    shared.ended(run["id"])
    shared.call("PATCH", f"/api/sessions/{run['session_id']}", {"title": "A title that goes on and on " * 5})
    for command, named in ((["sessions", "list"], run["session_id"]), (["runs", "list"], run["id"])):
        with Terminal(*command, data=shared.data_dir, width=width) as terminal:
            assert terminal.end() == 0
        lines = [line.rstrip() for line in terminal.seen.splitlines()]
        assert any(named in line for line in lines)
        assert all(len(line) <= width or line == named for line in lines), lines


def test_an_empty_list_says_so(shared: Served) -> None:
    """A terminal gets a sentence instead of bare headers; a pipe gets nothing."""
    with Terminal("sessions", "search", "sextant", data=shared.data_dir, width=100) as terminal:
        assert terminal.end() == 0
    assert terminal.seen.strip() == "No sessions."
    assert ok("sessions", "search", "sextant", data=shared.data_dir) == ""


def test_a_search_shows_what_it_found(shared: Served) -> None:
    """The words are in the line, whatever the length of the title and of the text before them."""
    run = send(shared, "word " * 8 + "kittiwake " + "word " * 8)
    shared.ended(run["id"])
    shared.call("PATCH", f"/api/sessions/{run['session_id']}", {"title": "A title that goes on and on " * 5})
    with Terminal("sessions", "search", "kittiwake", data=shared.data_dir, width=100) as terminal:
        assert terminal.end() == 0
    assert "kittiwake" in terminal.seen


def test_a_list_is_as_long_as_asked(shared: Served) -> None:
    """`--limit` limits the number of items."""
    for n in range(5):
        shared.call("POST", "/api/sessions", {"title": f"s{n}"})
    titles = [item["title"] for item in as_json("sessions", "list", "--limit", "3", data=shared.data_dir)]
    assert titles == ["s4", "s3", "s2"]


def test_replay_is_the_journal(shared: Served) -> None:
    """L5: `replay` prints exactly the events in the journal, from the start or after a cursor."""
    run = send(shared, SCRIPT)
    shared.ended(run["id"])
    lines = [json.loads(line) for line in ok("runs", "replay", run["id"], "--json", data=shared.data_dir).splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert (lines[0]["event"], lines[-1]["event"]) == ("run.started", "run.complete")
    rest = ok("runs", "replay", run["id"], "--json", "--after", "2", data=shared.data_dir)
    assert [json.loads(line) for line in rest.splitlines()] == lines[2:]
    assert "text.delta" in ok("runs", "replay", run["id"], data=shared.data_dir)


def test_replay_of_an_open_run_ends_and_follow_goes_on(shared: Served) -> None:
    """`replay` prints the events so far; `follow` waits for the rest."""
    run = send(shared, [{"say": "one"}, {"meet": "gate"}, {"say": "two"}])
    shared.order(reached="gate")
    assert "two" not in ok("runs", "replay", run["id"], data=shared.data_dir)
    with Terminal("runs", "follow", run["id"], data=shared.data_dir) as terminal:
        terminal.until("text=one")
        shared.order(open="gate")
        terminal.until("text=two")
        terminal.until("run.complete")
        assert terminal.end() == 0


def test_follow_survives_the_server(start: Start) -> None:
    """L5: across a killed and restarted server, each event is printed once, the terminal one included."""
    server = start()
    run = send(server, [{"tokens": 50}, {"hang": True}])
    with Terminal("runs", "follow", run["id"], "--json", data=server.data_dir) as terminal:
        terminal.until("t49 ")
        server.kill()
        terminal.until("Connection to the server lost.")
        start()
        assert terminal.end() == 0
    events = [json.loads(line) for line in terminal.seen.splitlines() if line.startswith("{")]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["event"] == "run.interrupted"


def test_without_a_server_a_killed_ones_runs_are_settled(start: Start) -> None:
    """X2: the `server.json` of a killed server is recognized as stale, and the command opens the directory itself."""
    server = start()
    run = send(server, [{"say": "kept"}, {"hang": True}])
    with server.http.stream("GET", f"/api/runs/{run['id']}/events") as stream:
        next(chunk for chunk in stream.iter_text() if "kept" in chunk)
    server.kill()
    assert (server.data_dir / "server.json").exists()
    assert as_json("runs", "show", run["id"], data=server.data_dir)["status"] == "interrupted"
    assert "kept" in ok("sessions", "show", run["session_id"], data=server.data_dir)


def test_looking_without_a_server_executes_nothing(start: Start, tmp_path: Path) -> None:
    """A3: commands that only read leave waiting and queued runs alone; the next server continues them."""
    server = start()
    run = send(server, [{"call": "c1", "name": "shell", "asks": True}, {"say": "done"}])
    with server.http.stream("GET", f"/api/runs/{run['id']}/events") as stream:
        next(chunk for chunk in stream.iter_text() if "approval.requested" in chunk)
    queued = server.send(run["session_id"], "next")["run"]
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
    again.ended(run["id"])
    again.ended(queued["id"])
    assert {item["status"] for item in as_json("runs", "list", data=data)} == {"complete"}


def _events(server: Served, rid: str) -> list[dict[str, Any]]:
    lines = ok("runs", "replay", rid, "--json", data=server.data_dir).splitlines()
    return [json.loads(line) for line in lines]


def test_ctrl_c_ends_a_command(shared: Served) -> None:
    """Ctrl-C exits with 130 and no traceback. The run continues."""
    run = send(shared, [{"say": "one"}, {"hang": True}])
    with Terminal("runs", "follow", run["id"], data=shared.data_dir) as terminal:
        terminal.until("text=one")
        terminal.interrupt()
        assert terminal.end() == 130
        assert "Traceback" not in terminal.seen
    assert as_json("runs", "show", run["id"], data=shared.data_dir)["status"] == "running"


def test_models_are_listed(shared: Served) -> None:
    """`models list` prints the server's list, which is empty for a scripted agent."""
    assert as_json("models", "list", data=shared.data_dir) == {"items": [], "default": None}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["runs", "show", "run_none"], 1, "There is no run with the id 'run_none'"),
        (["runs", "replay", "../sessions"], 1, "There is no such address"),
        (["sessions", "show", "ses_none"], 1, "There is no session"),
        (["chat", "--session", "ses_none", "hello"], 1, "There is no session"),
        (["runs", "list", "--status", "sleeping"], 1, "'sleeping' is not a valid status"),
        (["runs", "list", "--limit", "0"], 2, "--limit"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_refusals_say_what_and_have_a_code(shared: Served, arguments: list[str], code: int, message: str) -> None:
    """A refusal prints one line to stderr, nothing to stdout, and sets the exit code."""
    refused(*arguments, data=None if arguments == ["nonsense"] else shared.data_dir, code=code, message=message)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (89, "89 s"), (90, "1 min"), (7200, "2 h"), (3 * 86400, "3 d"), (-5, "0 s"), (-86400, "2026-03-02")],
)
def test_format_age(seconds: float, shown: str) -> None:
    """A time stamp a few seconds in the future, from a server whose clock is ahead, counts as now."""
    assert format_age((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == shown


@pytest.mark.parametrize(("number", "shown"), [(0, "0 turns"), (1, "1 turn"), (2, "2 turns")])
def test_count_of(number: int, shown: str) -> None:
    """One thing is not named in the plural."""
    assert count_of(number, "turn") == shown
