"""`holdfast export` and `holdfast import`, and the import files that are refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import as_json, holdfast, ok, refused
from tests.engine.test_export_import import from_elsewhere, nameless
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.importers.test_chatgpt import SAMPLES

SCRIPT = json.dumps([{"think": "hm"}, {"call": "c1", "name": "search", "args": {"q": 1}}, {"say": "at six é"}])


@pytest.fixture(scope="module")
def server(http_forker: ServerForker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with three sessions: with a file and two branches, archived, and empty."""
    with Served(http_forker, tmp_path_factory.mktemp("transfer") / "data") as served:
        served.ready()
        _fill(served)
        yield served


@pytest.fixture(scope="module")
def tides(server: Served) -> str:
    [found] = [item for item in server.call("GET", "/api/sessions")["items"] if item["title"] == "Tides"]
    return str(found["id"])


def _fill(server: Served) -> None:
    file = server.http.post("/api/files", files={"file": ("notes.txt", b"words " * 100_000, "text/plain")}).json()
    for title, more in (("Tides", {}), ("Old", {"archived": True}), ("Empty", {})):
        sid = server.call("POST", "/api/sessions", {"title": title, **more}, 201)["id"]
        if title != "Empty":
            parts: list[Any] = [{"type": "text", "text": SCRIPT}]
            parts += [{"type": "file", "file_id": file["id"]}] if title == "Tides" else []
            run = server.call("POST", f"/api/sessions/{sid}/runs", {"input": parts}, 202)["run"]
            server.ended(run["id"])
            again = server.call("POST", f"/api/sessions/{sid}/retry", {"message_id": run["message_id"]}, 202)["run"]
            server.ended(again["id"])


def test_everything_goes_out_and_in_again(server: Served, tmp_path: Path) -> None:
    """An import into another directory exports the same as the original, apart from ids."""
    file, other = tmp_path / "all.jsonl", tmp_path / "other"
    ok("export", "--output", file, data=server.data_dir)
    assert len(as_json("import", file, data=other)) >= 3
    again = tmp_path / "again.jsonl"
    ok("export", "--output", again, data=other)
    assert _sections(again.read_bytes()) == _sections(file.read_bytes())
    assert [item["title"] for item in as_json("sessions", "list", "--archived", data=other)] == ["Old"]
    assert [item["title"] for item in as_json("sessions", "search", "six", data=other)]


def _sections(data: bytes) -> list[Any]:
    """Each session by itself, in the order of their titles."""
    parts = [b'{"type":"session"' + part for part in data.split(b'{"type":"session"')[1:]]
    return sorted((nameless(part) for part in parts), key=lambda lines: str(lines[0]["title"]))


def test_through_a_pipe_into_a_running_server(server: Served, tides: str) -> None:
    """A session exported to stdout and imported from stdin arrives with its file."""
    text = holdfast("export", tides, data=server.data_dir).stdout
    [known] = json.loads(holdfast("import", "-", "--json", data=server.data_dir, stdin=text).stdout)
    assert (known["session_id"], known["messages"], known["is_new"]) == (tides, 0, False)
    text = from_elsewhere(text)
    [taken] = json.loads(holdfast("import", "-", "--json", data=server.data_dir, stdin=text).stdout)
    assert (taken["title"], taken["messages"], taken["files"]) == ("Tides", 3, 1)
    messages = server.call("GET", f"/api/sessions/{taken['session_id']}/messages")["items"]
    [file] = [part for part in messages[0]["parts"] if part["type"] == "file"]
    assert server.http.get(f"/api/files/{file['file_id']}/content").content == b"words " * 100_000


def test_what_a_file_may_not_choose_is_listed(server: Served) -> None:
    """On stderr, because the imported sessions on stdout are read by programs."""
    sid = server.call("POST", "/api/sessions", {"title": "Sent", "agent": "program", "settings": {"seed": 7}}, 201)[
        "id"
    ]
    text = from_elsewhere(holdfast("export", sid, data=server.data_dir).stdout)
    done = holdfast("import", "-", data=server.data_dir, stdin=text)
    assert done.stdout.decode().endswith("  Sent (0 messages)\n")
    assert done.stderr.decode().splitlines() == [
        "Imported 0 messages. Chats: 1 new, 0 updated, 0 unchanged.",
        "Skipped 2 items:",
        "  Sent: its agent 'program' was not kept; choose it in the chat",
        "  Sent: its settings seed were not kept",
    ]
    again = holdfast("import", "-", data=server.data_dir, stdin=text)
    assert (again.returncode, again.stdout) == (0, b"")
    assert again.stderr == b"Imported 0 messages. Chats: 0 new, 0 updated, 1 unchanged.\n"


def test_markdown_can_be_read(server: Served, tides: str) -> None:
    """Markdown contains the shown branch: authors, quoted reasoning, and tools with their results."""
    text = ok("export", tides, "--format", "markdown", data=server.data_dir)
    assert text.startswith("# Tides\n")
    for piece in ("## You", "> hm", "**search** (done)", "at six é", "*File: notes.txt (text/plain, 600000 bytes)*"):
        assert piece in text


def test_a_faulty_file_changes_nothing(server: Served, tmp_path: Path) -> None:
    """An error in the last of three sessions names the line, and not even the first session is imported."""
    file, before = tmp_path / "all.jsonl", as_json("sessions", "list", data=server.data_dir)
    ok("export", "--output", file, data=server.data_dir)
    lines = file.read_bytes().splitlines(keepends=True)
    for content, line in ((lines[:-1], len(lines) - 1), ([*lines[:-1], b'{"type":"end"}\n'], len(lines))):
        file.write_bytes(b"".join(content))
        refused("import", file, data=server.data_dir, message=f"{file}, line {line}: ")
    assert as_json("sessions", "list", data=server.data_dir) == before


def test_an_export_replaces_no_file(server: Served, tmp_path: Path) -> None:
    """An existing file is kept unless `--force` is given; exporting a missing session leaves no file."""
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
    """An empty file, another kind of file and a directory without an export are refused."""
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.write_bytes(b"")
    other.write_bytes(b"\x7fELF\0\0\n")
    unknown = "If it is a chat export, name its source with --from. Nothing was imported."
    for file, message in ((empty, "the file is empty"), (other, unknown), (tmp_path / "none", "Cannot read")):
        refused("import", file, data=server.data_dir, message=message)


def test_the_wrong_source_is_named(server: Served, tmp_path: Path) -> None:
    """With the option to use instead."""
    export, own = SAMPLES / "chatgpt-conversations.json", tmp_path / "own"
    own.write_bytes(b'{"type":"session","format":"holdfast-session"}\n')
    advice = "looks like a ChatGPT export. Import it with --from chatgpt. Nothing was imported."
    refused("import", "--from", "claude", export, data=server.data_dir, message=advice)
    advice = "looks like a Holdfast export. Import it without --from. Nothing was imported."
    refused("import", "--from", "claude", own, data=server.data_dir, message=advice)


def test_what_an_import_says_of_a_file_is_a_hint(server: Served, tides: str) -> None:
    """A wrong media type is corrected from the content, and a path is removed from the name."""
    text = holdfast("export", tides, data=server.data_dir).stdout
    claimed = text.replace(
        b'"name":"notes.txt","media_type":"text/plain"', b'"name":"../n","media_type":"text/html\\r\\nX: y"'
    )
    assert claimed != text
    claimed = from_elsewhere(claimed).replace(b'"other_', b'"another_')
    [taken] = json.loads(holdfast("import", "-", "--json", data=server.data_dir, stdin=claimed).stdout)
    [question, _] = server.call("GET", f"/api/sessions/{taken['session_id']}/messages")["items"]
    [file] = [part for part in question["parts"] if part["type"] == "file"]
    assert (file["name"], file["media_type"]) == ("n", "text/plain")
    headers = server.http.get(f"/api/files/{file['file_id']}/content").headers
    assert headers["content-type"] == "text/plain"
    assert "x" not in headers


def test_the_server_refuses_what_is_no_export(server: Served) -> None:
    """Over HTTP the error names the line, and a body of another media type is refused."""
    lines = {"Content-Type": "application/x-ndjson"}
    answer = server.http.post("/api/import", content=b"{}\n", headers=lines)
    assert (answer.status_code, answer.json()["field"]) == (422, "line 1")
    assert server.http.post("/api/import", json={}).status_code == 415
    assert server.http.post("/api/import", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
    foreign = {**lines, "Origin": "http://elsewhere.example"}
    assert server.http.post("/api/import", content=b"{}", headers=foreign).status_code == 403
