"""PostgreSQL goes away while runs of the real agent use tools: they wait for it and go on."""

import signal
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.chat.conftest import chat_forker, settings, up
from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.cluster.conftest import QUICK, Cluster
from tests.fork_server import ServerForker
from tests.http.client import OPEN
from tests.http.streams import until
from tests.servers import PostgresServer, RedisServer
from tests.upstream import Head, PauseAt, delta, says, sse

__all__ = ["chat_forker", "up"]

RULES = {"tools": {"write_file": "allow", "edit_file": "allow"}}
WRITE, EDIT = {"path": "a", "content": "1"}, {"path": "a", "old": "1", "new": "12"}
RUNS = 4
ATTEMPTS = 8
"""Connections that fail while PostgreSQL is away, before it comes back."""


@pytest.fixture(params=["redis", "postgres"])
def journal(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Settings that say where the journal is: in Redis, or in PostgreSQL with the rest."""
    if request.param == "postgres":
        yield {}
        return
    with closing(RedisServer()) as redis:
        yield {"journal_url": redis.start().url}


@pytest.fixture
def cluster(
    journal: dict[str, Any],
    chat_forker: ServerForker,
    up: ScriptedModelServer,
    tmp_path: Path,
    durable_postgres: PostgresServer,
) -> Iterator[Cluster]:
    """Nodes with the real agents and tools."""
    everything = {**QUICK, **settings(up, more=RULES), **journal}
    with closing(Cluster(chat_forker, tmp_path, durable_postgres, **everything)) as made:
        yield made


def test_runs_with_tools_wait_for_postgres(
    cluster: Cluster, journal: dict[str, Any], up: ScriptedModelServer, tmp_path: Path
) -> None:
    """X5: with the journal in Redis the models' calls arrive and are journaled while the store is away, and whether
    they may run cannot be looked up. Every run completes, and each tool has run once."""
    wire = cluster.wire()
    node = cluster.start(0, wire=wire)
    names = [f"outage {tmp_path.name} {n}" for n in range(RUNS)]
    begun: list[tuple[str, str]] = []
    for name in names:
        second = [Head(), *sse(delta(content="Then. ")), PauseAt(name), *calls(("c2", "edit_file", EDIT))[1:]]
        up.play(name, calls(("c1", "write_file", WRITE)), second, says("Done."))
        sid = node.session(title="A person's", model=f"{PROVIDER}/{name}")
        begun.append((sid, node.begin(sid, "Go")))
    followers = [node.follow(rid) for _, rid in begun]
    for name, follower in zip(names, followers, strict=True):
        up.reached(name)
        follower.until("text.delta")
    cluster.postgres.stop(signal.SIGQUIT)
    try:
        for name, follower in zip(names, followers, strict=True):
            up.let(name)
            if journal:
                follower.until("tool.delta", 2)
        refused = wire.refused
        until(lambda: wire.refused >= refused + ATTEMPTS)
    finally:
        cluster.postgres.start()

    for sid, rid in begun:
        look = partial(node.http.get, f"/api/runs/{rid}")
        run = until(look, lambda found: found.is_success and found.json()["status"] not in OPEN).json()
        assert (run["status"], run["error"]) == ("complete", None)
        assert (node.data_dir / "workspaces" / sid / "a").read_text() == "12"
        assert [part["state"] for part in node.answer(sid)["parts"] if part["type"] == "tool"] == ["done"] * 2
