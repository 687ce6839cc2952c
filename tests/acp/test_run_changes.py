"""What an agent program changed in its directory is listed and undone."""

from pathlib import Path

import pytest

from tests.acp.conftest import Program, open_session, play
from tests.http.conftest import Start
from tests.http.streams import until


@pytest.mark.parametrize("killed", [False, True])
def test_changes_of_a_program_are_undone(start: Start, program: Program, tmp_path: Path, killed: bool) -> None:
    """Also if the server was killed in the middle of its turn: then they are compared when somebody looks."""
    project = tmp_path / "projects" / "one"
    (project / ".git").mkdir(parents=True)
    (project / "kept.txt").write_bytes(b"one\xff")
    (project / "kept.txt").chmod(0o640)
    served = start(agent_directories=[str(project.parent)])
    sid = open_session(served, cwd=str(project))
    writes = [
        {"call": "write_text_file", "params": {"path": f"{project}/{name}", "content": "two"}}
        for name in ("kept.txt", "new.txt", ".git/index")
    ]
    rid = served.begin(sid, play(*writes, *([{"hang": True}] if killed else [{"say": "Done."}])))
    if killed:
        until((project / ".git" / "index").exists)
        served.kill()
        served = start(agent_directories=[str(project.parent)])
        until(lambda: served.run(rid), lambda run: run["status"] == "interrupted")
    else:
        ended = served.ended(rid)
        assert ended["status"] == "complete", ended["error"]
    url = f"/api/sessions/{sid}/workspace/changes"
    (found,) = served.get(url)["items"]
    assert (found["id"], found["names"], found["note"]) == (rid, ["kept.txt", "new.txt"], "")
    served.post(f"{url}/{rid}/restore", {})
    assert (project / "kept.txt").read_bytes() == b"one\xff"
    assert (project / "kept.txt").stat().st_mode & 0o777 == 0o640
    assert not (project / "new.txt").exists()
    assert (project / ".git" / "index").exists()  # version control has its own history
