"""`python -m tests.cluster --kills 50`: wave after wave of conversations through nginx while nodes are killed."""

import argparse
import random
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import anyio

from tests.cluster.conftest import QUICK, Cluster
from tests.cluster.kills import CONTINUES, wave
from tests.fork_server import ForkServer, ServerForker
from tests.servers import PostgresServer, RedisServer

_PER_WAVE = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="half of them with the journal in Redis")
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    with ExitStack() as held:
        postgres = held.enter_context(closing(PostgresServer(durable=True))).start()
        redis = held.enter_context(closing(RedisServer())).start()
        forker = ServerForker(held.enter_context(ForkServer()), "tests.http.server")
        for name, settings in (("PostgreSQL", {}), ("Redis", {"journal_url": redis.url})):
            root = Path(held.enter_context(tempfile.TemporaryDirectory()))
            with closing(Cluster(forker, root, postgres, **QUICK, **settings)) as cluster:
                _waves(cluster, chance, name, asked.kills // 2 if settings else asked.kills - asked.kills // 2)
    return 0


def _waves(cluster: Cluster, chance: random.Random, name: str, left: int) -> None:
    for n in range(3):
        cluster.start(n, **CONTINUES)
    while left > 0:
        began, kills = time.monotonic(), min(left, _PER_WAVE)
        report = anyio.run(partial(wave, cluster, chance, kills=kills))
        left -= kills
        print(
            f"{name}: {kills} kills, {left} left: {report.events} events, {report.reconnects} reconnects, "
            f"{dict(report.refusals)} refused, {report.asked} questions, {time.monotonic() - began:.0f} s; "
            "every record whole",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
