"""Backups beside a server that is busy: whole, checked, and good to start from."""

import json
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from holdfast.storage.sqlite import backup
from tests.cli.terminal import as_json, holdfast, ok
from tests.http.client import Served
from tests.http.conftest import Start
from tests.nursery import Fresh

RUNS = 20


def begin(server: Served, text: str, title: str = "") -> dict[str, Any]:
    sid = server.call("POST", "/api/sessions", {"title": title})["id"]
    run: dict[str, Any] = server.call("POST", f"/api/sessions/{sid}/runs", {"input": text}, 202)["run"]
    return run


async def shown(url: str, rid: str, enough: int) -> str:
    """What a client is shown of a run, as far as so many characters."""
    text = ""
    async with httpx.AsyncClient(base_url=url, timeout=30) as http, http.stream("GET", f"/api/runs/{rid}/events") as s:
        async for line in s.aiter_lines():
            if line.startswith("data: ") and '"text"' in line:
                text += json.loads(line[6:])["text"]
                if len(text) >= enough:
                    break
    return text


def test_a_backup_of_a_busy_server_has_what_was_shown(start: Start, tmp_path: Path) -> None:
    """Twenty runs stream: everything that anybody had been shown before the backup is in it, and the server goes on."""
    server = start()
    file = server.http.post("/api/files", files={"file": ("notes.txt", b"words " * 1000, "text/plain")}).json()
    parts = [{"type": "text", "text": "done"}, {"type": "file", "file_id": file["id"]}]
    before = begin(server, parts, "finished")  # type: ignore[arg-type]
    runs = [begin(server, json.dumps([{"tokens": 100_000, "rate": 200}])) for _ in range(RUNS)]
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
    """Keys come along, 0600; the lock and `server.json` do not; cursors of the change feed are not taken on."""
    ok("password", "--stdin", data=server.data_dir, stdin=b"correct horse\n")
    ok("chat", "hello", data=server.data_dir)
    copy = tmp_path / "copy"
    copy.mkdir()  # an empty directory will do
    ok("backup", copy, data=server.data_dir)
    assert sorted(path.name for path in copy.iterdir()) == ["holdfast.db", "journal.db", "keys.json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in copy.iterdir()} == {0o600}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    with sqlite3.connect(copy / "holdfast.db") as db:
        assert db.execute("SELECT count(*) FROM meta WHERE key = 'generation'").fetchone() == (0,)
    db.close()
    assert (copy / "keys.json").read_bytes() == (server.data_dir / "keys.json").read_bytes()


def test_a_backup_without_a_server(data: Path, tmp_path: Path) -> None:
    """The command opens the directory itself; the copy answers like the original, and can be backed up again."""
    ok("chat", "hello", data=data)
    ok("backup", tmp_path / "one", data=data)
    ok("backup", tmp_path / "two", data=tmp_path / "one")
    [session] = as_json("sessions", "list", data=data)
    told = as_json("sessions", "show", session["id"], data=data)["messages"]
    assert as_json("sessions", "show", session["id"], data=tmp_path / "two")["messages"] == told


def test_workspaces_come_along(data: Path, tmp_path: Path) -> None:
    """What tools have made, with links as links; a pipe that one left there is passed over."""
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
    """Not over something, not into the data directory, not below what is not there; nothing is left behind."""
    ok("chat", "hello", data=server.data_dir)
    full = tmp_path / "full"
    full.mkdir()
    (full / "precious").write_text("x")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for target, said in (
        (full, "is there already"),
        (full / "precious", "is there already"),
        (link, "is there already"),
        (server.data_dir / "copy", "inside the data directory"),
        (tmp_path / "no" / "copy", "make it first"),
    ):
        done = holdfast("backup", target, data=server.data_dir)
        assert done.returncode == 1
        assert said in done.stderr.decode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "full", "link"]
    assert [path.name for path in full.iterdir()] == ["precious"]


def test_a_browser_cannot_ask_for_a_backup(server: Served, tmp_path: Path) -> None:
    """Only who shows a token may have the server write somewhere."""
    body = {"path": str(tmp_path / "copy")}
    assert server.http.post("/api/backup", json=body).status_code == 403
    wrong = {"Authorization": "Bearer wrong"}
    assert server.http.post("/api/backup", json=body, headers=wrong).status_code == 403
    ok("password", "--stdin", data=server.data_dir, stdin=b"correct horse\n")
    server.http.post("/api/login", json={"password": "correct horse"})
    assert server.http.get("/api/sessions").status_code == 200
    assert server.http.post("/api/backup", json=body).status_code == 403
    assert not (tmp_path / "copy").exists()


class Stopped(Exception):
    pass


def test_a_backup_that_is_stopped_leaves_nothing(data: Path, tmp_path: Path) -> None:
    """Whoever asked has gone: what was begun is removed."""
    ok("chat", "hello", data=data)

    def report(what: str, done: int, total: int) -> None:
        if what == "journal.db":
            raise Stopped

    with pytest.raises(Stopped):
        backup.copy(data, tmp_path / "copy", report)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
