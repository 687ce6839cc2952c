"""`python -m tests.cluster --kills 50`: wave after wave of conversations through nginx while nodes are killed."""

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import anyio

from tests.cluster.conftest import QUICK, Cluster
from tests.cluster.kills import CONTINUES, wave
from tests.nursery import Nursery
from tests.servers import PostgresServer

_PER_WAVE = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    chance, left = random.Random(seed), asked.kills
    postgres = PostgresServer(durable=True)
    try:
        postgres.start()
        with Nursery("tests.http.server") as nursery, tempfile.TemporaryDirectory() as root:
            cluster = Cluster(nursery, Path(root), postgres, **QUICK)
            try:
                for n in range(3):
                    cluster.start(n, **CONTINUES)
                while left > 0:
                    began, kills = time.monotonic(), min(left, _PER_WAVE)
                    report = anyio.run(partial(wave, cluster, chance, kills=kills))
                    left -= kills
                    print(
                        f"{kills} kills, {left} left: {report.events} events, {report.reconnects} reconnects, "
                        f"{report.asked} questions, {time.monotonic() - began:.0f} s; every record whole",
                        flush=True,
                    )
            finally:
                cluster.remove()
    finally:
        postgres.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
