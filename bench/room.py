"""Memory of streams that nothing happens on, and what a million tokens leave on the disk."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.child import Child, directory
from bench.figures import Figure, Missing
from bench.targets import holdfast, request
from bench.tokens import Scenario, measure


def idle(streams: int, upstream: Child, load: Child) -> Iterator[Figure | Missing | str]:
    """Clients that wait for something to happen."""
    yield f"{streams:,} idle streams"
    with holdfast(upstream.tell("address")) as served:
        measure(
            Scenario("", 4, 20, None), served, upstream, load
        )  # what is opened for the first streams is no stream's
        alone = served.watched.memory()
        load.tell("open", port=served.port, requests=[request(served.port, "GET", "/api/events")] * streams, tokens=1)
        load.tell("begun")
        time.sleep(0.5)
        full = served.watched.memory()
        load.tell("drop")
    yield Figure("memory", "server at rest", alone, "MB")
    yield Figure("memory", f"with {streams:,} idle streams", full, "MB", target=300.0)
    yield Figure("memory", "an idle stream", (full - alone) * 1024 / streams, "kB")


def growth(streams: int, tokens: int, upstream: Child, load: Child) -> Iterator[Figure | Missing | str]:
    """What a server leaves on the disk when it stops: all tables, indexes and journals. It has had as much before, so
    that room which is used again and again is not counted."""
    yield "growth of the data directory"
    scenario = Scenario("", streams, tokens, 20.0)
    with tempfile.TemporaryDirectory(dir=directory(), prefix="holdfast-bench-") as own:
        data = Path(own) / "data"
        with holdfast(upstream.tell("address"), data) as served:
            measure(scenario, served, upstream, load)
        before = size_mb(data)
        with holdfast(upstream.tell("address"), data) as served:
            measure(scenario, served, upstream, load)
        grown = size_mb(data) - before
    yield Figure(
        "disk", f"a million tokens ({streams} runs of {tokens} at 20/s)", grown / (streams * tokens) * 1e6, "MB"
    )


def size_mb(path: Path) -> float:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6
