"""`holdfast memory`, through a server and without one."""

from pathlib import Path

from tests.cli.terminal import as_json, holdfast, ok
from tests.http.conftest import Start


def test_facts_are_listed_changed_and_forgotten(start: Start) -> None:
    """What is remembered is shown with its id, found by words, said better, pinned, and taken away."""
    server = start(remembers=True)
    data, sid = server.data_dir, server.session()
    server.turn(sid, "I live in Lisbon. I love olives.")
    assert "0 turns remembered, 1 to go, by notes" in ok("memory", "status", sid, data=data)
    assert as_json("memory", "commit", sid, data=data)["committed"] == 1
    assert as_json("memory", "commit", sid, data=data)["nothing_new"] is True
    [home] = as_json("memory", "list", "lisbon", data=data)
    assert ok("memory", "list", data=data).count("\n") == 2
    assert ok("memory", "change", home["id"], "--text", "Lives in Porto.", "--pin", data=data) == "Lives in Porto.\n"
    [home] = as_json("memory", "list", "porto", data=data)
    assert home["pinned"] is True
    ok("memory", "delete", home["id"], data=data)
    assert [fact["text"] for fact in as_json("memory", "list", data=data)] == ["The person likes olives."]
    gone = holdfast("memory", "delete", home["id"], data=data)
    assert gone.returncode != 0
    assert home["id"] in gone.stderr.decode()


def test_commands_work_without_a_server(start: Start, data: Path) -> None:
    """M11: with no server running, a command sees what is dirty, leaves it so, and commits it when told to."""
    server = start(remembers=True)
    sid = server.session()
    server.turn(sid, "I live in Lisbon.")
    server.kill()
    assert as_json("memory", "list", data=data) == []
    assert as_json("memory", "status", sid, data=data)["dirty_turns"] == 1
    assert as_json("memory", "commit", sid, data=data)["committed"] == 1
    assert [fact["text"] for fact in as_json("memory", "list", data=data)] == ["The person lives in Lisbon."]
