"""What a run changed in the files of its session is listed and undone: exact bytes and modes, also after `kill -9`."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.chat.questions import decide
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until
from tests.http.test_workspace import OUTSIDE
from tests.upstream import Hang, PauseAt, says

FREE = {"tools": {"write_file": "allow", "edit_file": "allow"}}
BEFORE = {"a.txt": (b"one\n\0\xff", 0o640), "run.sh": (b"#!/bin/sh\n", 0o755), "src/x.py": (b"x = 1\n", 0o600)}


def prepare(served: Served, sid: str) -> Path:
    """The workspace that a run begins with."""
    root = served.data_dir / "workspaces" / sid
    for name, (content, mode) in BEFORE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
        (root / name).chmod(mode)
    return root


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    found = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o7777) for path in found}


def sets(served: Served, sid: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = served.get(f"/api/sessions/{sid}/workspace/changes")["items"]
    return found


def restore(served: Served, sid: str, set_id: str, expect: int = 200, **body: Any) -> Any:
    return served.post(f"/api/sessions/{sid}/workspace/changes/{set_id}/restore", body, expect=expect)


SCRIPT = (
    "rm run.sh; chmod 644 src/x.py; printf 'x = 2\\n' > src/x.py; mkdir -p new/deep; echo made > new/deep/made.txt; "
    "echo ready"
)


def test_changes_of_a_run_are_listed_compared_and_undone(start: Start, up: ScriptedModelServer) -> None:
    """Of our own tools and of commands; a restore is refused while files were changed since, and can be undone."""
    model = "changes"
    up.play(
        model,
        calls(("c1", "write_file", {"path": "a.txt", "content": "two\n"})),
        calls(("c2", "shell", {"command": SCRIPT})),
        calls(("c3", "edit_file", {"path": "new/deep/made.txt", "old": "made", "new": "edited"})),
        says("Done."),
    )
    served = start(more=FREE)
    sid = served.session(model=f"{PROVIDER}/{model}")
    root = prepare(served, sid)
    rid = served.begin(sid, "Change it")
    decide(served, rid, "once")
    assert served.ended(rid)["status"] == "complete"
    after = contents(root)
    (found,) = sets(served, sid)
    assert (found["id"], found["kind"], found["files"], found["note"]) == (rid, "run", 4, "")
    assert found["names"] == ["a.txt", "new/deep/made.txt", "run.sh", "src/x.py"]
    url = f"/api/sessions/{sid}/workspace/changes/{rid}"
    files = {item["path"]: item for item in served.get(url)["items"]}
    assert [files[name]["kind"] for name in found["names"]] == ["modified", "created", "deleted", "modified"]
    assert (files["src/x.py"]["before_mode"], files["src/x.py"]["after_mode"]) == (0o600, 0o644)
    shown = served.get(f"{url}/diff?path=src/x.py")
    assert shown["diff"] == "--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    assert shown["current"] == "after"
    assert served.get(f"{url}/diff?path=a.txt")["diff"] is None  # it was binary
    (root / "src/x.py").write_bytes(b"mine\n")
    refused = restore(served, sid, rid, expect=412)
    assert (refused["type"], refused["paths"]) == ("files-changed", ["src/x.py"])
    assert contents(root)["a.txt"] == after["a.txt"]
    done = restore(served, sid, rid, overwrite=True)
    assert contents(root) == BEFORE
    assert not (root / "new").exists()
    assert done["skipped"] == []
    assert [(item["kind"], item["undone"]) for item in sets(served, sid)] == [("restore", rid), ("run", None)]
    restore(served, sid, done["id"])
    assert contents(root) == {**after, "src/x.py": (b"mine\n", 0o644)}


@pytest.mark.parametrize("moment", ["command", "write", "between"])
def test_killed_in_the_middle_everything_comes_back(moment: str, start: Start, up: ScriptedModelServer) -> None:
    """Killed while a command works, after a write whose result is not journaled, or between two steps: a restore
    returns exactly the earlier bytes and modes."""
    model = f"changes killed {moment}"
    writes = calls(
        ("c1", "write_file", {"path": "a.txt", "content": "two\n"}), ("c2", "write_file", {"path": "b", "content": "b"})
    )
    shell = calls(("c3", "shell", {"command": f"{SCRIPT}; sleep 1000"}))
    up.play(model, writes, [PauseAt(model), Hang()] if moment == "between" else shell)
    served = start(more=FREE, **({"stuck": "tool.finished"} if moment == "write" else {}))
    sid = served.session(model=f"{PROVIDER}/{model}")
    root = prepare(served, sid)
    rid = served.begin(sid, "Change it")
    if moment == "command":
        decide(served, rid, "once")
        until((root / "new/deep/made.txt").exists, bool)
        with served.watch(rid) as stream:
            while "ready" not in (stream.until("tool.delta").data.get("output_delta") or ""):
                pass
    elif moment == "between":
        up.reached(model)
    else:
        until((served.data_dir / "stuck").exists, bool)
    served.kill()
    assert contents(root) != BEFORE
    served = start(more=FREE)
    until(lambda: served.run(rid), lambda run: run["status"] == "interrupted")
    (found,) = sets(served, sid)
    assert found["id"] == rid
    restore(served, sid, rid)
    assert contents(root) == BEFORE


def test_no_change_set_leads_out(start: Start, up: ScriptedModelServer, tmp_path: Path) -> None:
    """Paths that lead out, other sessions and unknown sets are refused; links that were swapped in are not followed;
    nothing is restored while a run is at work; without a login nothing is answered."""
    model = "changes attacked"
    up.play(
        model,
        calls(("c1", "write_file", {"path": "dir/a.txt", "content": "two"})),
        says("Done."),
        [PauseAt(model), Hang()],
    )
    served = start(more=FREE)
    sid, other = served.session(model=f"{PROVIDER}/{model}"), served.session()
    rid = served.begin(sid, "Change it")
    served.ended(rid)
    root, url = served.data_dir / "workspaces" / sid, f"/api/sessions/{sid}/workspace/changes"
    for path in (*OUTSIDE, "", ".", "dir/../dir/a.txt"):
        for written in (path, quote(path, safe="")):
            found = served.http.get(f"{url}/{rid}/diff", params={"path": written})
            assert found.status_code in (404, 409, 422), (written, found.text)
            found = served.http.post(f"{url}/{rid}/restore", json={"paths": [written]})
            assert found.status_code in (404, 409, 422) or found.json()["restored"] == [], (written, found.text)
    assert (root / "dir/a.txt").exists()
    for bad in ("run_unknown", "..%2f..%2fx", "%00", "restore_0"):
        raw = httpx.URL(served.url).copy_with(raw_path=f"{url}/{bad}".encode())
        assert served.http.get(raw).status_code in (404, 405), bad
    (served.data_dir / "workspaces" / other).mkdir()
    assert served.http.get(f"/api/sessions/{other}/workspace/changes/{rid}").status_code == 404
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("secret")
    os.rename(root / "dir", root / "old")
    (root / "dir").symlink_to(outside)
    for body in ({}, {"overwrite": True}):
        served.http.post(f"{url}/{rid}/restore", json=body)
        assert (outside / "a.txt").read_text() == "secret"
    busy = served.begin(sid, "More")
    up.reached(model)
    refused = restore(served, sid, rid, expect=409)
    assert (refused["type"], refused["active_run"]) == ("session-busy", busy)
    served.post(f"/api/runs/{busy}/cancel")
