"""`holdfast backup`: complete and usable copies, also of a busy server."""

import json
import os
import sqlite3
import stat
from pathlib import Path

import anyio
import httpx
import pytest

from holdfast.server.authenticator import issue_token
from holdfast.storage.key_file import KeyFile
from holdfast.storage.sqlite import backup
from tests.cli.terminal import as_json, ok, refused
from tests.fork_server import Fresh
from tests.http.client import Served
from tests.http.conftest import Start

RUNS = 20


async def shown(url: str, rid: str, enough: int) -> str:
    """Reads at least so many characters of a run, as a client does."""
    text = ""
    async with httpx.AsyncClient(base_url=url, timeout=30) as http, http.stream("GET", f"/api/runs/{rid}/events") as s:
        async for line in s.aiter_lines():
            if line.startswith("data: ") and '"text"' in line:
                text += json.loads(line[6:])["text"]
                if len(text) >= enough:
                    break
    return text


def test_a_backup_of_a_busy_server_has_what_was_shown(start: Start, tmp_path: Path) -> None:
    """While twenty runs stream, a backup contains everything that clients had seen, and the server continues."""
    server = start()
    file = server.http.post("/api/files", files={"file": ("notes.txt", b"words " * 1000, "text/plain")}).json()
    parts = [{"type": "text", "text": "done"}, {"type": "file", "file_id": file["id"]}]
    before = server.post(f"/api/sessions/{server.session()}/runs", {"input": parts}, 202)["run"]
    runs = [server.send(server.session(), [{"tokens": 100_000, "rate": 200}])["run"] for _ in range(RUNS)]
    seen: dict[str, str] = {}

    async def watch() -> None:
        async def one(rid: str) -> None:
            seen[rid] = await shown(server.url, rid, 400)

        async with anyio.create_task_group() as tasks:
            for run in runs:
                tasks.start_soon(one, run["id"])

    anyio.run(watch)
    copy = tmp_path / "copy"
    done = as_json("backup", copy, data=server.data_dir)
    assert (done["sessions"], done["runs"], done["files"]) == (RUNS + 1, RUNS + 1, 1)
    assert {run["status"] for run in as_json("runs", "list", "--limit", "50", data=server.data_dir)} == {
        "running",
        "complete",
    }
    server.kill()
    with Served(Fresh("tests.http.server"), copy) as restored:
        restored.ready()
        for run in runs:
            [_, message] = restored.call("GET", f"/api/sessions/{run['session_id']}/messages")["items"]
            text = "".join(part["text"] for part in message["parts"])
            assert message["status"] == "interrupted"
            assert text.startswith(seen[run["id"]])
        assert restored.call("GET", f"/api/runs/{before['id']}")["status"] == "complete"
        assert restored.http.get(f"/api/files/{file['id']}/content").content == b"words " * 1000


def test_a_backup_is_private_and_leaves_out_what_is_of_the_moment(server: Served, tmp_path: Path) -> None:
    """Keys are copied with mode 0600; the lock, `server.json` and the change feed's generation are not."""
    ok("password", "--stdin", data=server.data_dir, stdin=b"correct horse\n")
    ok("chat", "hello", data=server.data_dir)
    copy = tmp_path / "copy"
    copy.mkdir()  # an empty directory is accepted
    ok("backup", copy, data=server.data_dir)
    assert sorted(path.name for path in copy.iterdir()) == ["holdfast.db", "journal.db", "keys.json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in copy.iterdir()} == {0o600}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    with sqlite3.connect(copy / "holdfast.db") as db:
        assert db.execute("SELECT count(*) FROM meta WHERE key = 'generation'").fetchone() == (0,)
    db.close()
    assert (copy / "keys.json").read_bytes() == (server.data_dir / "keys.json").read_bytes()


def test_a_backup_without_a_server(data: Path, tmp_path: Path) -> None:
    """Without a server the command opens the directory itself; a backup can be backed up again."""
    ok("chat", "hello", data=data)
    ok("backup", tmp_path / "one", data=data)
    ok("backup", tmp_path / "two", data=tmp_path / "one")
    [session] = as_json("sessions", "list", data=data)
    told = as_json("sessions", "show", session["id"], data=data)["messages"]
    assert as_json("sessions", "show", session["id"], data=tmp_path / "two")["messages"] == told


def test_workspaces_come_along(data: Path, tmp_path: Path) -> None:
    """Workspaces are copied with symbolic links as links; pipes are skipped."""
    ok("chat", "hello", data=data)
    made = data / "workspaces" / "ses_1" / "deep"
    made.mkdir(parents=True)
    (made / "program").write_text("#!/bin/sh\n")
    (made / "program").chmod(0o700)
    (made / "link").symlink_to("/etc/passwd")
    (made / "up").symlink_to("..")
    os.mkfifo(made / "pipe")
    ok("backup", tmp_path / "copy", data=data)
    copy = tmp_path / "copy" / "workspaces" / "ses_1" / "deep"
    assert sorted(path.name for path in copy.iterdir()) == ["link", "program", "up"]
    assert (copy / "program").stat().st_mode & 0o777 == 0o700
    assert (os.readlink(copy / "link"), os.readlink(copy / "up")) == ("/etc/passwd", "..")


def test_a_backup_goes_nowhere_else(server: Served, tmp_path: Path) -> None:
    """A backup into an existing file, the data directory or a missing parent is refused and leaves nothing behind."""
    ok("chat", "hello", data=server.data_dir)
    full = tmp_path / "full"
    full.mkdir()
    (full / "precious").write_text("x")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for target, message in (
        (full, "already exists"),
        (full / "precious", "already exists"),
        (link, "already exists"),
        (server.data_dir / "copy", "inside the data directory"),
        (tmp_path / "no" / "copy", "create it first"),
    ):
        refused("backup", target, data=server.data_dir, message=message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "full", "link"]
    assert [path.name for path in full.iterdir()] == ["precious"]


def test_a_browser_cannot_ask_for_a_backup(server: Served, tmp_path: Path) -> None:
    """Only a request with a token may make the server write files."""
    body = {"path": str(tmp_path / "copy")}
    assert server.http.post("/api/backup", json=body).status_code == 403
    wrong = {"Authorization": "Bearer wrong"}
    assert server.http.post("/api/backup", json=body, headers=wrong).status_code == 403
    ok("password", "--stdin", data=server.data_dir, stdin=b"correct horse\n")
    server.http.post("/api/login", json={"password": "correct horse"})
    assert server.http.get("/api/sessions").status_code == 200
    assert server.http.post("/api/backup", json=body).status_code == 403
    assert not (tmp_path / "copy").exists()


def test_a_token_alone_cannot_ask_for_a_backup(server: Served, tmp_path: Path) -> None:
    """The copy contains every secret, so the password must have been entered lately; the log names the address."""
    ok("password", "--stdin", data=server.data_dir, stdin=b"correct horse\n")
    _, token = issue_token(KeyFile(server.data_dir), "script", 1.0)
    body, bearer = {"path": str(tmp_path / "copy")}, {"Authorization": f"Bearer {token}"}
    answer = server.http.post("/api/backup", json=body, headers=bearer)
    assert (answer.status_code, answer.json()["type"]) == (403, "reauthentication-required")
    assert not (tmp_path / "copy").exists()
    server.http.post("/api/login", json={"password": "correct horse"})
    assert "event: done" in server.http.post("/api/backup", json=body, headers=bearer).text
    server.terminate()
    assert f"backup started address='127.0.0.1' path={body['path']!r}" in server.complaints


class StoppedError(Exception):
    pass


def test_a_backup_that_is_stopped_leaves_nothing(data: Path, tmp_path: Path) -> None:
    """If the client leaves, the unfinished copy is removed."""
    ok("chat", "hello", data=data)

    def report(what: str, done: int, total: int) -> None:
        if what == "journal.db":
            raise StoppedError

    with pytest.raises(StoppedError):
        backup.copy(data, tmp_path / "copy", report)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
