"""A node dies at any moment and nobody loses anything."""

import random

import anyio
import pytest

from tests.cluster.conftest import Cluster
from tests.cluster.kills import CONTINUES, wave


@pytest.mark.timeout(240)
def test_sixty_streams_survive_nodes_that_are_killed(cluster: Cluster) -> None:
    """X1, X5, L5, L7: through nginx, with three kills of random nodes, every client's record is gap-free and equals the
    transcript, every run ends, and no tool ran twice unasked."""
    for n in range(3):
        cluster.start(n, **CONTINUES)
    report = anyio.run(lambda: wave(cluster, random.Random(8), kills=3))
    assert report.events > 60 * 20
    assert report.reconnects >= 60
