"""The files of a chat with an agent program are those of the directory that the program works in."""

from pathlib import Path

from tests.acp.conftest import Program, open_session
from tests.http.conftest import Start


def test_the_directory_of_the_program_is_shown(start: Start, tmp_path: Path) -> None:
    """The chosen directory if there is one, else the agent's; links to it are resolved, and a lost one is a problem."""
    project, usual = tmp_path / "project", tmp_path / "usual"
    for directory in (project, usual):
        directory.mkdir()
        (directory / f"{directory.name}.txt").write_text(directory.name)
    (tmp_path / "by-link").symlink_to(usual)
    served = start(section={"cwd": str(tmp_path / "by-link")}, agent_directories=[str(tmp_path)])
    chosen, default = open_session(served, cwd=str(project)), open_session(served)
    assert served.get(f"/api/sessions/{chosen}/workspace") == {
        "directory": str(project),
        "origin": "chosen",
        "available": True,
        "reason": None,
    }
    for sid, name, origin in ((chosen, "project.txt", "chosen"), (default, "usual.txt", "agent")):
        assert served.get(f"/api/sessions/{sid}/workspace")["origin"] == origin
        assert [item["name"] for item in served.get(f"/api/sessions/{sid}/workspace/entries")["items"]] == [name]
    chat = served.session(agent="chat", cwd=str(project))
    assert served.get(f"/api/sessions/{chat}/workspace")["origin"] == "private"
    (project / "project.txt").unlink()
    project.rmdir()
    where = served.get(f"/api/sessions/{chosen}/workspace")
    assert (where["available"], where["reason"]) == (
        False,
        f"there is no directory {project}; create it, or choose another one",
    )
    lost = served.http.get(f"/api/sessions/{chosen}/workspace/entries")
    assert (lost.status_code, lost.json()["type"]) == (409, "workspace-unavailable")


def test_the_data_directory_is_never_reached(start: Start, tmp_path: Path) -> None:
    """An agent that works above the data directory shows everything but that: not by name, by a link or in an archive,
    and not if the agent itself is set to work in it."""
    served = start(agent_directories=[str(tmp_path)])
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "link").symlink_to("data")
    sid = open_session(served, cwd=str(tmp_path))
    base = f"/api/sessions/{sid}/workspace"
    for path in ("data", "data/workspaces", "link", "data/../data"):
        found = served.http.get(f"{base}/entries", params={"path": path})
        assert found.status_code in (409, 422), path
    for path in ("data/holdfast.db", "link/holdfast.db", "data/server.json"):
        for call in ("file", "preview", "content", "artifact"):
            assert served.http.get(f"{base}/{call}", params={"path": path}).status_code == 409, (call, path)
    listed = {item["name"]: item["target"] for item in served.get(f"{base}/entries")["items"]}
    assert (listed["data"], listed["link"]) == (None, None)
    archive = served.http.get(f"{base}/archive").content
    assert b"notes.txt" in archive
    assert b"holdfast.db" not in archive


def test_an_agent_set_to_work_in_the_data_directory_shows_nothing(
    start: Start, program: Program, tmp_path: Path
) -> None:
    """A `cwd` in the configuration is not checked when it is set, so it is checked when files are read."""
    served = start(section={"cwd": str(tmp_path / "data" / "files")})
    (tmp_path / "data" / "files").mkdir(exist_ok=True)
    where = served.get(f"/api/sessions/{open_session(served)}/workspace")
    assert not where["available"]
    assert "in the data directory" in where["reason"]
