"""Measures the memory of idle streams, and how much disk space a million tokens take."""

import tempfile
import time
from pathlib import Path

from bench.figures import Figure, FigureSteps
from bench.servers import holdfast, request
from bench.token_cost import Scenario, measure
from bench.worker_process import WorkerProcess, bench_directory


def measure_idle_streams(streams: int, upstream: WorkerProcess, load: WorkerProcess) -> FigureSteps:
    """Resident memory with many subscribers of the change feed."""
    yield f"{streams:,} idle streams"
    with holdfast(upstream.call("address")) as served:
        measure(Scenario("", 4, 20, None), served, upstream, load)  # warm up: first imports and connections
        alone = served.process.memory()
        load.call("open", port=served.port, requests=[request(served.port, "GET", "/api/events")] * streams, tokens=1)
        load.call("begun")
        time.sleep(0.5)
        full = served.process.memory()
        load.call("drop")
    yield Figure("memory", "server at rest", alone, "MB")
    yield Figure("memory", f"with {streams:,} idle streams", full, "MB", target=300.0)
    yield Figure("memory", "an idle stream", (full - alone) * 1024 / streams, "kB")


def measure_disk_growth(streams: int, tokens: int, upstream: WorkerProcess, load: WorkerProcess) -> FigureSteps:
    """Size of the data directory after a clean stop. A first run of the same size excludes space that is reused."""
    yield "growth of the data directory"
    scenario = Scenario("", streams, tokens, 20.0)
    with tempfile.TemporaryDirectory(dir=bench_directory(), prefix="holdfast-bench-") as own:
        data = Path(own) / "data"
        with holdfast(upstream.call("address"), data) as served:
            measure(scenario, served, upstream, load)
        before = size_mb(data)
        with holdfast(upstream.call("address"), data) as served:
            measure(scenario, served, upstream, load)
        grown = size_mb(data) - before
    yield Figure(
        "disk", f"a million tokens ({streams} runs of {tokens} at 20/s)", grown / (streams * tokens) * 1e6, "MB"
    )


def size_mb(path: Path) -> float:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6
