"""Notifications of a cluster: one key, one list of devices, and each message from one node."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.conftest import Cluster
from tests.http.streams import until
from tests.push.service import PushServiceServer, verify_authorization

QUICKLY: dict[str, Any] = {"sweep_interval": 0.5, "poll_interval": 1.0, "push_claim": 60.0}


@pytest.fixture
def push_service() -> Iterator[PushServiceServer]:
    with PushServiceServer().running() as service:
        yield service


def test_each_answer_is_told_once(cluster: Cluster, push_service: PushServiceServer) -> None:
    """L7: whichever node a browser subscribed at, and whichever ended the run; also that of a killed node."""
    nodes = [cluster.start(n, push_origins=[push_service.origin], engine=QUICKLY) for n in range(2)]
    keys = {node.get("/api/push/key")["public_key"] for node in nodes}
    assert len(keys) == 1
    nodes[0].post("/api/push/subscriptions", push_service.subscribe())
    runs = [node.begin(node.session(), [{"say": "done"}]) for node in nodes * 5]
    for rid in runs:
        nodes[0].ended(rid)
    push_service.wait(len(runs))
    until(
        lambda: nodes[1].get("/api/push/subscriptions")["items"][0], lambda device: device["succeeded_at"] is not None
    )
    hanging = nodes[0].begin(nodes[0].session(), [{"say": "begun"}, {"hang": True}])
    nodes[0].kill()
    again = cluster.start(0, push_origins=[push_service.origin], engine=QUICKLY)
    assert again.ended(hanging)["status"] == "interrupted"
    received = push_service.wait(len(runs) + 1)
    assert Counter(each.content["tag"] for each in received) == Counter([*runs, hanging])
    assert {verify_authorization(each.headers["Authorization"], push_service.origin)[0] for each in received} == keys
