"""`holdfast projects`, and exports that keep projects."""

from pathlib import Path

from tests.cli.terminal import as_json, holdfast, ok, refused
from tests.http.conftest import Start


def test_projects_are_created_shown_listed_and_deleted(start: Start) -> None:
    """By name, with and without a running server; chats are kept unless told otherwise."""
    server = start()
    data = server.data_dir
    made = ok("projects", "create", "Harbor office", "--instructions", "Be brief.", data=data).strip()
    sid = server.session(project="Harbor office")
    assert [item["id"] for item in as_json("projects", "list", data=data)] == [made]
    for _ in range(2):
        (row,) = ok("projects", "list", data=data).splitlines()
        assert row.split("\t")[0::3] == [made, "Harbor office"]
        shown = ok("projects", "show", "Harbor office", data=data)
        assert "Be brief." in shown
        assert "chats\t1" in shown
        server.terminate()
    refused("projects", "create", "Harbor office", data=data, message="another project has it")
    refused("projects", "show", "Elsewhere", data=data, message="Elsewhere")
    ok("projects", "delete", "Harbor office", data=data)
    assert as_json("projects", "list", data=data) == []
    assert as_json("sessions", "show", sid, data=data)["project"] is None
    ok("projects", "create", "Gone", data=data)
    ok("projects", "delete", "Gone", "--delete-chats", data=data)


def test_an_export_of_everything_keeps_projects(start: Start, tmp_path: Path) -> None:
    """Also an archived one with its chats; another directory has the same instructions and files after the import."""
    server = start()
    server.post("/api/projects", {"name": "Old", "instructions": "Be brief.", "color": "red"}, 201)
    sent = server.http.post("/api/files", files={"file": ("a.txt", b"Anna has the key.", "text/plain")}).json()
    server.post("/api/projects/Old/files", {"file_id": sent["id"]})
    for n in range(2):
        server.session(title=f"{n}", project="Old")
    server.call("PATCH", "/api/projects/Old", {"archived": True}, 200)
    file, other = tmp_path / "all.jsonl", tmp_path / "other"
    ok("export", "--output", file, data=server.data_dir)
    assert holdfast("import", file, data=other).returncode == 0
    found = as_json("projects", "show", "Old", data=other)
    assert (found["instructions"], found["color"], found["archived"], found["chats"]) == ("Be brief.", "red", True, 2)
    assert [each["name"] for each in found["files"]] == ["a.txt"]
