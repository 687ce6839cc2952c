"""The journal on Redis and the store on PostgreSQL: section J with a real journal that is away, and streams that
outlive restarts of Redis."""

import signal
from typing import Any

import pytest

from tests.cluster.conftest import SHORT_LEASE, Cluster
from tests.cluster.test_failures import outage
from tests.http.client import OPEN
from tests.http.streams import said, shown, until
from tests.http.test_recovery import RARELY, SPOKEN, check_pending, state
from tests.servers import RedisServer


def lost(cluster: Cluster, redis: RedisServer) -> tuple[str, str]:
    """A run that died with its node at its gate, and Redis after it."""
    node = cluster.start(0)
    sid = node.session()
    rid = node.begin(sid, SPOKEN)
    node.order(reached="here")
    with node.watch(rid) as stream:
        stream.until("text.delta"), stream.until("text.delta")
    node.kill()
    redis.stop()
    return sid, rid


def test_a_run_goes_through_any_node(with_redis: Cluster) -> None:
    """L7: with its journal in Redis a run is executed by one node and followed live and cancelled through another."""
    face, worker = (
        with_redis.start(0, engine={"max_runs": 0, "sweep_interval": 0.5, "poll_interval": 1.0}),
        with_redis.start(1),
    )
    sid = face.session()
    rid = face.begin(sid, [{"say": "first "}, {"meet": "here"}, {"say": "second"}, {"hang": True}])
    follower = face.follow(rid)
    follower.until("text.delta")
    worker.order(open="here")
    follower.until("text.delta", 2)
    face.cancel(rid)
    assert follower.ended()[-1].event == "run.cancelled"
    assert said(face.answer(sid)) == shown(follower.frames) == "first second"
    assert worker.order(upstreams=1) == 0


def test_a_session_stays_usable_while_redis_is_away(with_redis: Cluster, redis: RedisServer) -> None:
    """J1, J2: a dead run is shown as pending, the session can be renamed and sent to; with Redis back, the next reader
    finds the output and the new turn is answered."""
    sid, rid = lost(with_redis, redis)
    node = with_redis.start(0, engine=RARELY)
    check_pending(node, sid, rid)
    node.refused("storage-unavailable", "GET", f"/api/runs/{rid}/events")
    assert node.call("PATCH", f"/api/sessions/{sid}", {"title": "still here"}, 200)["title"] == "still here"
    more = node.begin(sid, "and now?", on_busy="reject")
    redis.start()
    assert node.ended(more)["status"] == "complete"
    assert [said(message) for message in node.messages(sid)][1:] == ["one two", "and now?", "and now?"]


@pytest.mark.parametrize(
    "how",
    [pytest.param(signal.SIGTERM, id="restart", marks=pytest.mark.soak), pytest.param(signal.SIGKILL, id="crash")],
)
def test_redis_may_go_and_come_back(with_redis: Cluster, redis: RedisServer, how: signal.Signals) -> None:
    """X1: while Redis is away nothing is shown, and sessions stay readable."""
    with outage(with_redis) as (nodes, sids, rids):
        redis.stop(how)
        assert nodes[1].look(sids[0])["active_run"] == rids[0]
        redis.start()


def test_a_node_cut_off_from_redis_lets_its_runs_be_ended(with_redis: Cluster, redis: RedisServer) -> None:
    """X1, J2: bytes between a node and Redis go nowhere, while PostgreSQL serves: its run is stopped, what was shown is
    in the transcript once somebody can read the journal, and the node works again when the line is mended."""
    wire = with_redis.wire(redis.port)
    url = f"redis://127.0.0.1:{wire.port}/0"
    quick: dict[str, Any] = {"storage_retry_time": 3.0, "final_save": 4.0, "sweep_interval": 0.5, "poll_interval": 1.0}
    isolated = with_redis.start(0, journal_url=url, **SHORT_LEASE, engine={"fence_wait": 1.0, **quick})
    other = with_redis.start(1, engine={"max_runs": 0, **quick})
    sid = other.session()
    rid = other.begin(sid, [{"say": "first "}, {"tokens": 1000, "rate": 50}])
    with isolated.watch(rid) as stream:
        for _ in range(5):
            stream.until("text.delta")
        wire.cut()
        seen = [frame.raw for frame in stream.rest()]
    run = until(lambda: other.run(rid), lambda run: run["status"] not in OPEN)
    assert run["status"] in ("failed", "interrupted")
    frames = until(lambda: other.events(rid), lambda frames: frames and frames[-1].event.startswith("run."))
    assert [frame.raw for frame in frames][: len(seen)] == seen
    # J3: a reader is not kept waiting while another one recovers the output
    answer = until(lambda: other.answer(sid), lambda answer: state(answer) != "pending")
    assert said(answer) == shown(frames)
    wire.mend()
    assert until(lambda: isolated.turn(isolated.session(), "again")["status"], lambda status: status == "complete")
