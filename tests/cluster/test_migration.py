"""`holdfast migrate-store`: everything that an embedded server had, a cluster has."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest

from holdfast.app import migrate_store
from holdfast.config import Config
from holdfast.core.errors import HoldfastError
from holdfast.server.authenticator import issue_token
from holdfast.storage.key_file import KeyFile
from tests.cluster.conftest import Cluster
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.servers import RedisServer


def lived_in(forker: ServerForker, data_dir: Path) -> dict[str, Any]:
    """A data directory with a little of everything, and what its server shows."""
    with Served(forker, data_dir) as server:
        server.ready()
        sids = [server.session(title=f"Session {n} \x00 ü") for n in range(5)]
        for n, sid in enumerate(sids):
            tool = {"call": f"c{n}", "result": {"n": n}}
            server.turn(sid, [{"think": "hm "}, tool, {"say": f"heron number {n}"}, {"usage": [n, 1]}])
            server.turn(sid, f"again {n}")
        cleared = server.session(title="Cleared")
        server.turn(cleared, [{"say": "gone"}, {"usage": [90, 10]}])  # its usage counts without its run
        server.post(f"/api/sessions/{cleared}/clear")
        server.post(f"/api/sessions/{sids[0]}/undo")
        server.call("PATCH", f"/api/sessions/{sids[1]}", {"archived": True, "tags": ["a"]}, 200)
        server.call("DELETE", f"/api/sessions/{sids[2]}", expect=204)
        server.call("PATCH", "/api/settings", {"tools": {"fetch": "deny"}}, 200)
        file = server.http.post("/api/files", files={"file": ("a.txt", b"words " * 100_000, "text/plain")}).json()
        server.turn(sids[3], "look at this")
        server.stand(sids[4], [{"say": "cut "}, {"meet": "here"}, {"hang": True}])
        _, token = issue_token(KeyFile(data_dir), "laptop", 1.0)
        shared = server.post(f"/api/sessions/{sids[3]}/shares", {"files": True}, 201)["path"]
        shown = what_is_shown(server, file["id"], shared)
        server.kill()
    return {**shown, "token": token, "file": file["id"], "shared": shared}


def what_is_shown(server: Served, file: str, shared: str) -> dict[str, Any]:
    sessions = server.get("/api/sessions")["items"] + server.get("/api/sessions?archived=true")["items"]
    runs = server.get("/api/runs?limit=100")["items"]
    closed = [run for run in runs if run["status"] == "complete"]
    return {
        "sessions": [(each["id"], each["title"], each["tags"]) for each in sessions],
        "messages": {each["id"]: server.messages(each["id"])[:3] for each in sessions},
        "runs": closed,
        "events": {run["id"]: [frame.raw for frame in server.events(run["id"])] for run in closed},
        "usage": server.get("/api/usage?by=model")["total"],
        "found": [hit["id"] for hit in server.get("/api/sessions?query=heron")["items"]],
        "settings": server.get("/api/settings")["tools"],
        "shares": [{**share, "last_opened_at": None} for share in server.get("/api/shares")["items"]],
        "shared page": server.http.get(shared).content,
        "content": server.http.get(f"/api/files/{file}/content").content,
    }


def check(cluster: Cluster, before: dict[str, Any], **settings: Any) -> None:
    node = cluster.start(0, **settings)
    after = what_is_shown(node, before["file"], before["shared"])
    assert after == {name: before[name] for name in after}
    cut = [run for run in node.get("/api/runs?limit=100")["items"] if run["status"] == "interrupted"]
    assert len(cut) == 1  # what was running when the old server went
    bearer = {"Authorization": f"Bearer {before['token']}"}
    assert node.http.get("/api/tokens", headers=bearer).json()["items"][0]["name"] == "laptop"
    assert node.turn(node.session(), "it goes on")["status"] == "complete"


def test_everything_is_moved_and_checked(cluster: Cluster, cluster_forker: ServerForker, tmp_path: Path) -> None:
    """The command moves rows, journals, contents and keys to PostgreSQL; a cluster then shows what was shown before."""
    before = lived_in(cluster_forker, tmp_path / "node0")
    command = [sys.executable, "-m", "holdfast", "migrate-store", "--to", cluster.store_url, "--json"]
    answer = subprocess.run(
        [*command, "--data-dir", str(tmp_path / "node0")], capture_output=True, text=True, timeout=60, check=False
    )
    assert answer.returncode == 0, answer.stderr
    counts = json.loads(answer.stdout)
    assert (counts["sessions"], counts["contents"], counts["erased_usage"]) == (6, 2, 1)
    assert counts["journals"] == counts["runs"] == 12
    check(cluster, before)


def test_a_move_that_was_broken_off_goes_on(
    with_redis: Cluster, redis: RedisServer, cluster_forker: ServerForker, tmp_path: Path
) -> None:
    """Broken off anywhere and begun again, the move ends with everything there once, journals in Redis included."""
    data_dir = tmp_path / "node0"
    before = lived_in(cluster_forker, data_dir)
    config = Config(data_dir=data_dir, store_url=with_redis.store_url, journal_url=redis.url)
    steps: list[str] = []

    class BrokenError(Exception):
        pass

    def until(limit: int) -> Any:
        left = [limit]

        def report(what: str, done: int, total: int) -> None:
            steps.append(what)
            left[0] -= 1
            if left[0] < 0:
                raise BrokenError

        return report

    for limit in (0, 2, 5, 9):
        with pytest.raises(BrokenError):
            anyio.run(migrate_store.migrate, config, until(limit))
    counts = anyio.run(migrate_store.migrate, config, until(10_000))
    assert counts["sessions"] == 6
    assert {"journals", "contents of files", "messages", "facts verified"} <= set(steps)
    check(with_redis, before)


def test_a_move_into_a_database_with_data_is_refused(
    cluster: Cluster, cluster_forker: ServerForker, tmp_path: Path
) -> None:
    """Sessions of others are neither mixed with ours nor overwritten, and a difference after the move is noticed."""
    lived_in(cluster_forker, tmp_path / "old")
    node = cluster.start(0)
    node.session(title="of somebody else")
    node.kill()
    config = Config(data_dir=tmp_path / "old", store_url=cluster.store_url)
    with pytest.raises(HoldfastError, match="already"):
        anyio.run(migrate_store.migrate, config, lambda *_: None)
    with psycopg.connect(cluster.store_url, autocommit=True) as db:
        db.execute("DELETE FROM holdfast.sessions; DELETE FROM holdfast.docs")
    anyio.run(migrate_store.migrate, config, lambda *_: None)
    with psycopg.connect(cluster.store_url, autocommit=True) as db:
        db.execute("UPDATE holdfast.messages SET status = 'failed' WHERE id = (SELECT min(id) FROM holdfast.messages)")
    with pytest.raises(HoldfastError, match="messages"):
        anyio.run(migrate_store.migrate, config, lambda *_: None)
