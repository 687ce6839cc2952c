"""`python -m tests.fuzz`: at least so many examples over all calls, against a server of its own."""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.fork_server import Fresh
from tests.fuzz.fuzz import fuzz
from tests.http.client import Served


def main() -> int:
    parser = argparse.ArgumentParser(description="Send hostile requests to the HTTP surface.")
    parser.add_argument("--examples", type=int, default=5000, help="over all calls, at least")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.randrange(1 << 31) if arguments.seed is None else arguments.seed
    with (
        tempfile.TemporaryDirectory() as directory,
        Served(Fresh("tests.http.server"), Path(directory) / "data") as server,
    ):
        server.ready()
        calls = sum(len(methods) for methods in server.get("/openapi.json")["paths"].values())
        each = -(-arguments.examples // calls) + 60  # calls without parameters have one example
        report = fuzz(server, each, seed, lambda call, n: print(f"{n:6} {call}", flush=True))
        alive = server.get("/healthz") == {"status": "ok"}
    for unmade in report.unmade:
        print(f"could not be made: {unmade}")
    for failure in report.failures:
        print(f"failure: {failure}")
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(report.statuses.items()))
    print(
        f"fuzz: {report.examples} examples over {len(report.by_call)} calls, seed {seed}, "
        f"{len(report.failures)} failures ({statuses})"
    )
    return 0 if alive and not report.failures and report.examples >= arguments.examples else 1


if __name__ == "__main__":
    sys.exit(main())
