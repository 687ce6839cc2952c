"""Export and import as commands: to a file, through a pipe, into another directory; and what is refused."""

import json
from pathlib import Path
from typing import Any

from tests.cli.terminal import as_json, holdfast, ok
from tests.engine.test_transfer import nameless
from tests.http.client import Served

SCRIPT = json.dumps([{"think": "hm"}, {"call": "c1", "name": "search", "args": {"q": 1}}, {"say": "at six é"}])


def filled(server: Served) -> list[str]:
    """Three sessions: with a file and two branches, archived, and empty."""
    ids = []
    file = server.http.post("/api/files", files={"file": ("notes.txt", b"words " * 100_000, "text/plain")}).json()
    for title, more in (("Tides", {}), ("Old", {"archived": True}), ("Empty", {})):
        sid = server.call("POST", "/api/sessions", {"title": title, **more}, 201)["id"]
        ids.append(sid)
        if title != "Empty":
            parts: list[Any] = [{"type": "text", "text": SCRIPT}]
            parts += [{"type": "file", "file_id": file["id"]}] if title == "Tides" else []
            run = server.call("POST", f"/api/sessions/{sid}/runs", {"input": parts}, 202)["run"]
            _ended(server, run["id"])
            again = server.call("POST", f"/api/sessions/{sid}/retry", {"message_id": run["message_id"]}, 202)["run"]
            _ended(server, again["id"])
    return ids


def _ended(server: Served, rid: str) -> None:
    with server.http.stream("GET", f"/api/runs/{rid}/events") as stream:
        for _ in stream.iter_bytes():
            pass


def test_everything_goes_out_and_in_again(server: Served, tmp_path: Path) -> None:
    """Export, import into another directory without a server, export: the same but for the ids."""
    filled(server)
    file, other = tmp_path / "all.jsonl", tmp_path / "other"
    ok("export", "--output", file, data=server.data_dir)
    assert len(as_json("import", file, data=other)) == 3
    again = tmp_path / "again.jsonl"
    ok("export", "--output", again, data=other)
    assert _sections(again.read_bytes()) == _sections(file.read_bytes())
    assert [item["title"] for item in as_json("sessions", "list", "--archived", data=other)] == ["Old"]
    assert [item["title"] for item in as_json("sessions", "search", "six", data=other)]


def _sections(data: bytes) -> list[Any]:
    """Each session by itself, in the order of their titles."""
    parts = [b'{"type":"session"' + part for part in data.split(b'{"type":"session"')[1:]]
    return sorted((nameless(part) for part in parts), key=lambda lines: str(lines[0]["title"]))


def test_through_a_pipe_into_a_running_server(server: Served) -> None:
    """One session by its id to stdout, from stdin into the server: it is there at once, with its file."""
    sid = filled(server)[0]
    text = holdfast("export", sid, data=server.data_dir).stdout
    [taken] = json.loads(holdfast("import", "-", "--json", data=server.data_dir, stdin=text).stdout)
    assert (taken["title"], taken["messages"], taken["files"]) == ("Tides", 3, 1)
    messages = server.call("GET", f"/api/sessions/{taken['session_id']}/messages")["items"]
    [file] = [part for part in messages[0]["parts"] if part["type"] == "file"]
    assert server.http.get(f"/api/files/{file['file_id']}/content").content == b"words " * 100_000


def test_markdown_can_be_read(server: Served) -> None:
    """The shown branch: who said what, thoughts quoted, tools with their results."""
    sid = filled(server)[0]
    text = ok("export", sid, "--format", "markdown", data=server.data_dir)
    assert text.startswith("# Tides\n")
    for piece in ("## You", "> hm", "**search** (done)", "at six é", "*File: notes.txt (text/plain, 600000 bytes)*"):
        assert piece in text


def test_a_faulty_file_changes_nothing(server: Served, tmp_path: Path) -> None:
    """The fault is in the last of three sessions: the line is named, and not even the first is taken in."""
    filled(server)
    file = tmp_path / "all.jsonl"
    ok("export", "--output", file, data=server.data_dir)
    lines = file.read_bytes().splitlines(keepends=True)
    for content, line in ((lines[:-1], len(lines) - 1), ([*lines[:-1], b'{"type":"end"}\n'], len(lines))):
        file.write_bytes(b"".join(content))
        done = holdfast("import", file, data=server.data_dir)
        assert done.returncode == 1
        assert f"{file}, line {line}: " in done.stderr.decode()
        assert "Nothing was imported." in done.stderr.decode()
    assert len(as_json("sessions", "list", data=server.data_dir)) == 2


def test_an_export_replaces_no_file(server: Served, tmp_path: Path) -> None:
    """A file that is there stays, unless `--force` is given; a session that is not there leaves none."""
    filled(server)
    file = tmp_path / "all.jsonl"
    file.write_text("precious")
    assert holdfast("export", "--output", file, data=server.data_dir).returncode == 1
    assert file.read_text() == "precious"
    ok("export", "--output", file, "--force", data=server.data_dir)
    assert file.read_bytes().startswith(b'{"type":"session"')
    missing = tmp_path / "missing.jsonl"
    assert holdfast("export", "ses_none", "--output", missing, data=server.data_dir).returncode == 1
    assert sorted(path.name for path in tmp_path.glob("*.jsonl*")) == ["all.jsonl"]


def test_what_is_no_export_is_refused(server: Served, tmp_path: Path) -> None:
    """An empty file, another kind of file, a directory and one that is not there."""
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.write_bytes(b"")
    other.write_bytes(b"\x7fELF\0\0\n")
    for file, said in ((empty, "is empty"), (other, "line 1: is not JSON"), (tmp_path, "cannot be read")):
        done = holdfast("import", file, data=server.data_dir)
        assert done.returncode == 1
        assert said in done.stderr.decode()


def test_what_an_import_says_of_a_file_is_a_hint(server: Served) -> None:
    """A type that the content does not have, and a name that is a path, are not believed."""
    sid = filled(server)[0]
    text = holdfast("export", sid, data=server.data_dir).stdout
    claimed = text.replace(
        b'"name":"notes.txt","media_type":"text/plain"', b'"name":"../n","media_type":"text/html\\r\\nX: y"'
    )
    assert claimed != text
    [taken] = json.loads(holdfast("import", "-", "--json", data=server.data_dir, stdin=claimed).stdout)
    [question, _] = server.call("GET", f"/api/sessions/{taken['session_id']}/messages")["items"]
    [file] = [part for part in question["parts"] if part["type"] == "file"]
    assert (file["name"], file["media_type"]) == ("n", "text/plain")
    headers = server.http.get(f"/api/files/{file['file_id']}/content").headers
    assert headers["content-type"] == "text/plain"
    assert "x" not in headers


def test_the_server_refuses_what_is_no_export(server: Served) -> None:
    """Over HTTP too: the line is named, and a body of another type is not taken."""
    lines = {"Content-Type": "application/x-ndjson"}
    answer = server.http.post("/api/import", content=b"{}\n", headers=lines)
    assert (answer.status_code, answer.json()["field"]) == (422, "line 1")
    assert server.http.post("/api/import", json={}).status_code == 415
    assert server.http.post("/api/import", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
    foreign = {**lines, "Origin": "http://elsewhere.example"}
    assert server.http.post("/api/import", content=b"{}", headers=foreign).status_code == 403
