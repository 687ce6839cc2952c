"""`holdfast doctor` reports problems and changes nothing."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.doctor import check_user
from tests.cli.terminal import holdfast, ok, refused
from tests.contract.machine import snapshot
from tests.fork_server import ServerForker
from tests.http.client import Served


def findings(data: Path) -> tuple[int, dict[str, Any]]:
    done = holdfast("doctor", "--json", data=data)
    found = json.loads(done.stdout)
    assert found["ok"] == (done.returncode == 0)
    return done.returncode, {item["what"]: item for item in found["findings"]}


def test_all_is_well_beside_a_running_server(server: Served) -> None:
    """All checks pass, and the lock names the server's process."""
    ok("chat", "hello", data=server.data_dir)
    server.session(settings={"source": "compare"})
    code, found = findings(server.data_dir)
    assert code == 0
    assert str(server.process.pid) in found["server"]["text"]
    assert found["contents"]["text"] == "1 sessions, 2 messages, 1 runs, 1 sessions of comparisons"
    assert found["shell sandbox"]["text"].startswith(("bubblewrap, without network access", "none: bubblewrap"))
    assert "All checks passed." in holdfast("doctor", data=server.data_dir).stderr.decode()


def test_running_as_root_is_a_warning() -> None:
    """It says what to do, and does not fail the check."""
    root, person = check_user(0), check_user(1000)
    assert (root.ok, root.warning, person.ok, person.warning) == (True, True, True, False)
    assert "Start it as an ordinary user" in root.text


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests do not run as root")
def test_a_warning_is_marked(data: Path) -> None:
    """In the list, and in the line at its end; the exit code stays 0."""
    done = holdfast("doctor", data=data)
    assert "WARN  user: the server would run as root" in done.stdout.decode()
    assert "All checks passed. 1 warning." in done.stderr.decode()
    assert done.returncode == 0


def test_a_directory_that_is_not_there_yet(data: Path) -> None:
    """A missing data directory is fine, and is not created."""
    assert findings(data)[0] == 0
    assert not data.exists()


def test_damage_is_seen_and_nothing_is_changed(data: Path) -> None:
    """Damaged databases and wrong file modes are reported with exit code 1."""
    ok("chat", "hello", data=data)
    data.chmod(0o755)
    (data / "keys.json").chmod(0o644)
    database = data / "holdfast.db"
    content = bytearray(database.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    database.write_bytes(content)
    (data / "journal.db").write_bytes(b"")
    before = snapshot(data)
    code, found = findings(data)
    assert code == 1
    wrong = {what for what, item in found.items() if not item["ok"]}
    assert {"mode", "keys.json", "holdfast.db", "journal.db"} <= wrong
    assert snapshot(data) == before


def test_sessions_that_a_damaged_wal_dropped_are_noticed(http_forker: ServerForker, data: Path) -> None:
    """SQLite ignores a damaged write-ahead log: the newest sessions are gone, but the journal has their runs. The
    doctor and the next start say so."""
    with Served(http_forker, data) as server:
        server.ready()
        sid = server.session()
        server.turn(sid, "hello")
        server.kill()
    wal = bytearray((data / "holdfast.db-wal").read_bytes())
    wal[:32] = bytes(32)
    (data / "holdfast.db-wal").write_bytes(wal)
    code, found = findings(data)
    assert code == 1
    assert "1 runs of journal.db are not in holdfast.db" in found["store and journal"]["text"]
    with Served(http_forker, data) as server:
        server.ready()
        assert server.get("/api/sessions")["items"] == []
        assert "does not know 1 of the newest runs" in server.complaints


def test_a_wrong_setting_is_a_usage_error(data: Path, tmp_path: Path) -> None:
    """Every command validates the configuration file."""
    file = tmp_path / "holdfast.toml"
    file.write_text("colour = 1\n")
    refused("doctor", "--config", file, data=data, code=2, message="'colour' is not a setting")
