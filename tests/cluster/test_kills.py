"""A node dies at any moment and nobody loses anything."""

import random

import anyio
import pytest

from tests.cluster.conftest import Cluster
from tests.cluster.kills import CONTINUES, wave


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("conversations", "kills", "rate"), [(8, 2, 30.0), pytest.param(60, 3, 10.0, marks=pytest.mark.soak)]
)
def test_streams_survive_nodes_that_are_killed(cluster: Cluster, conversations: int, kills: int, rate: float) -> None:
    """X1, X5, L5, L7: through nginx, with kills of random nodes, every client's record is gap-free and equals the
    transcript, every run ends, and no tool ran twice unasked."""
    for n in range(3):
        cluster.start(n, **CONTINUES)
    chance = random.Random(8)
    report = anyio.run(lambda: wave(cluster, chance, kills=kills, conversations=conversations, rate=rate))
    assert report.events > conversations * 20
    assert report.reconnects >= conversations
