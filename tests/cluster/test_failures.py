"""What a cluster must live through: nodes that stand still or are cut off, and a PostgreSQL that goes away."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster.conftest import QUICK, SHORT_LEASE, Cluster
from tests.http.client import OPEN, Served
from tests.http.streams import said, shown, until

CONTINUES: dict[str, Any] = {"policy": {"auto_continue": True, "max_resumes": 50}}


def begun(node: Served, script: Any, **session: Any) -> tuple[str, str]:
    """A session and a run in it that has said something."""
    sid = node.session(**session)
    rid = node.begin(sid, script)
    with node.watch(rid) as stream:
        stream.until("text.delta")
    return sid, rid


def test_an_owner_that_stood_still_cannot_write_when_it_wakes(cluster: Cluster) -> None:
    """X2, L7: stopped beyond its lease, an owner is overtaken; continued, its append is refused and it stops."""
    face = cluster.start(0, engine={"max_runs": 0, "sweep_interval": 0.5, "poll_interval": 1.0})
    owner = cluster.start(1, **SHORT_LEASE)
    sid, rid = begun(face, [{"say": "first "}, {"tokens": 100_000, "rate": 50}])
    owner.tell(signal.SIGSTOP)
    run = until(lambda: face.run(rid), lambda run: run["status"] not in OPEN)
    assert run["status"] == "interrupted"
    events = face.events(rid)
    assert events[-1].event == "run.interrupted"
    before = face.answer(sid)
    assert said(before) == shown(events)
    owner.tell(signal.SIGCONT)
    until(lambda: owner.order(upstreams=1), lambda open_ones: open_ones == 0)
    for node in (face, owner):
        assert [frame.raw for frame in node.events(rid)] == [frame.raw for frame in events]
        assert node.answer(sid) == before
    assert owner.turn(owner.session(), "still good")["status"] == "complete"


@pytest.mark.parametrize("way", ["killed", "replaced"])
def test_a_run_whose_node_goes_is_continued_by_another(cluster: Cluster, way: str) -> None:
    """X5, L7: with automatic continue the run goes on at another node, where its journal ends, also in a rolling
    upgrade; finished tools are not run again, and a client that watches through a third node is shown one unbroken
    answer."""
    face = cluster.start(0, engine={"max_runs": 0, "sweep_interval": 0.5, "poll_interval": 1.0}, **CONTINUES)
    leaving = cluster.start(1, drain=0.0, **SHORT_LEASE, **CONTINUES)
    sid = face.session()
    rid = face.begin(sid, [{"say": "a "}, {"call": "once"}, {"say": "b "}, {"meet": "here"}, {"say": "c"}])
    follower = face.follow(rid)
    leaving.order(reached="here")
    if way == "killed":
        leaving.kill()
    else:
        assert leaving.terminate() == 0
        assert face.run(rid)["status"] == "queued"
    successor = cluster.start(2, **CONTINUES)
    successor.order(reached="here")
    successor.order(open="here")
    frames = follower.ended()
    assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
    runs = [frame.event for frame in frames if frame.event.startswith("run.")]
    assert runs == ["run.started", "run.resumed", "run.complete"]
    answer = until(lambda: successor.answer(sid), lambda answer: answer["status"] == "complete")
    assert said(answer) == shown(frames) == "a b c"
    assert (leaving.effects, successor.effects) == (["once"], [])


def test_a_node_that_comes_back_finds_its_runs_at_once(cluster: Cluster) -> None:
    """X2: a node has the same name after a restart, and does not wait for leases of its own to lapse."""
    dying = cluster.start(0, lease_time=600.0)
    sid, rid = begun(dying, [{"say": "first "}, {"hang": True}])
    dying.kill()
    back = cluster.start(0, lease_time=600.0)
    assert back.run(rid)["status"] == "interrupted"
    assert said(back.answer(sid)) == "first "


@contextmanager
def outage(cluster: Cluster) -> Iterator[tuple[list[Served], list[str], list[str]]]:
    """Nodes, sessions and runs that are under way. Whatever went away in the block, afterwards the runs have gone on by
    themselves, no tool ran twice, and every record is whole."""
    nodes = [cluster.start(n) for n in (0, 1)]
    script = [{"tokens": 30, "rate": 60}, {"call": "once"}, {"meet": "on"}, {"tokens": 60, "rate": 60}]
    sids = [nodes[n % 2].session() for n in range(6)]
    rids = [nodes[n % 2].begin(sid, script) for n, sid in enumerate(sids)]
    seen = {rid: nodes[0].follow(rid) for rid in rids}
    for follower in seen.values():
        follower.until("text.delta")
    yield nodes, sids, rids
    for node in nodes:
        node.order(open="on")
    expected = "".join(f"t{n} " for n in range(30)) + "".join(f"t{n} " for n in range(60))
    for sid, rid in zip(sids, rids, strict=True):
        frames: list[Any] = []
        while not frames or not frames[-1].event.startswith("run.c"):
            frames += until(lambda rid=rid, frames=frames: nodes[1].events(rid, frames[-1].seq if frames else 0))  # type: ignore[misc]
        assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
        assert frames[-1].event == "run.complete"
        run = until(lambda rid=rid: nodes[0].run(rid), lambda run: run["status"] not in OPEN)  # type: ignore[misc]
        assert run["status"] == "complete"
        assert shown(frames) == said(nodes[0].answer(sid)) == expected
        early = seen[rid].ended()
        assert [frame.raw for frame in early] == [frame.raw for frame in frames][: len(early)]
    assert sorted(nodes[0].effects + nodes[1].effects) == ["once"] * 6


@pytest.mark.parametrize(
    "how", [pytest.param(signal.SIGINT, id="restart", marks=pytest.mark.soak), pytest.param(signal.SIGQUIT, id="crash")]
)
def test_postgres_may_go_and_come_back(cluster: Cluster, how: signal.Signals) -> None:
    """X1, U3: while PostgreSQL is away nothing is shown that could be lost."""
    with outage(cluster):
        cluster.postgres.stop(how)
        cluster.postgres.start()


def test_a_node_that_is_cut_off_lets_go_and_another_goes_on(cluster: Cluster) -> None:
    """X1, X5: bytes between a node and PostgreSQL go nowhere: it stops its runs before its leases lapse, another node
    continues them, what was shown is kept, and when the line is mended the node works again."""
    wire = cluster.wire()
    isolated = cluster.start(0, wire=wire, **SHORT_LEASE, **CONTINUES)
    face = cluster.start(1, engine={"max_runs": 0, **QUICK["engine"]}, **CONTINUES)
    sid, rid = begun(isolated, [{"say": "first "}, {"tokens": 150, "rate": 50}])
    with isolated.watch(rid) as stream:
        for _ in range(5):
            stream.until("text.delta")
        wire.cut()
        seen = [frame.raw for frame in stream.rest()]  # the node lets its watchers go
    worker = cluster.start(2, **CONTINUES)
    frames = face.events(rid)
    assert [frame.raw for frame in frames][: len(seen)] == seen
    assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
    assert frames[-1].event == "run.complete"
    assert shown(frames) == "first " + "".join(f"t{n} " for n in range(150))
    assert said(worker.answer(sid)) == shown(frames)
    until(lambda: isolated.order(upstreams=1), lambda open_ones: open_ones == 0)
    wire.mend()
    until(lambda: isolated.http.get("/api/sessions").status_code, lambda status: status == 200)
    assert said(isolated.answer(sid)) == shown(frames)
