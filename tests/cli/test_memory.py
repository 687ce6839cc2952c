"""`holdfast memory`, with and without a running server."""

from pathlib import Path

from tests.cli.terminal import as_json, ok, refused
from tests.http.conftest import Start


def test_facts_are_listed_changed_and_forgotten(start: Start) -> None:
    """Facts are listed, searched, edited, pinned and deleted."""
    server = start(remembers=True)
    data, sid = server.data_dir, server.session()
    server.turn(sid, "I live in Lisbon. I love olives.")
    assert "0 turns in memory, 1 pending (provider: notes)" in ok("memory", "status", sid, data=data)
    assert as_json("memory", "commit", sid, data=data)["committed"] == 1
    assert as_json("memory", "commit", sid, data=data)["nothing_new"] is True
    [home] = as_json("memory", "list", "lisbon", data=data)
    assert ok("memory", "list", data=data).count("\n") == 2
    assert ok("memory", "change", home["id"], "--text", "Lives in Porto.", "--pin", data=data) == "Lives in Porto.\n"
    [home] = as_json("memory", "list", "porto", data=data)
    assert home["pinned"] is True
    added = ok("memory", "add", "Has a boat.", data=data).strip()
    assert [fact["id"] for fact in as_json("memory", "list", "boat", data=data)] == [added]
    ok("memory", "delete", added, data=data)
    ok("memory", "delete", home["id"], data=data)
    assert [fact["text"] for fact in as_json("memory", "list", data=data)] == ["Likes olives."]
    refused("memory", "delete", home["id"], data=data, message=home["id"])


def test_commands_work_without_a_server(start: Start, data: Path) -> None:
    """M11: without a server, status leaves pending turns alone, and commit commits them."""
    server = start(remembers=True)
    sid = server.session()
    server.turn(sid, "I live in Lisbon.")
    server.kill()
    assert as_json("memory", "list", data=data) == []
    assert as_json("memory", "status", sid, data=data)["dirty_turns"] == 1
    assert as_json("memory", "commit", sid, data=data)["committed"] == 1
    assert [fact["text"] for fact in as_json("memory", "list", data=data)] == ["Lives in Lisbon."]
