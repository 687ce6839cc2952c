"""Measures a server on a directory with many sessions: start, list, search and open, over HTTP."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.figures import Figure
from bench.load_client import spread
from bench.process_usage import MonitoredProcess
from bench.servers import configure, free_port, request, wait_for
from bench.worker_process import WorkerProcess, bench_directory
from holdfast.bench_data.seed import COMMON, RARE, session_id


def measure_server(
    data: Path, sessions: int, longest: int, times: int, upstream: WorkerProcess, load: WorkerProcess
) -> Iterator[Figure | str]:
    """`data` has `sessions` sessions and one more with `longest` messages."""
    yield f"start with {sessions:,} sessions"
    configure(data, upstream.call("address"))
    with tempfile.TemporaryDirectory() as own:
        yield from _start("an empty directory", Path(own) / "data")
    port = free_port()
    took = []
    for _ in range(3):
        process, seconds = start(data, port)
        took.append(seconds * 1e3)
        with MonitoredProcess(process):
            pass
    yield Figure("large", f"process start to first answer, {sessions:,} sessions", spread(took)[0], target=1000.0)
    process, _ = start(data, port)
    with MonitoredProcess(process):
        for what, path, target in paths(sessions, longest):
            yield what
            requests = [request(port, "GET", path)] * times
            got = load.call("ask", port=port, requests=requests, pause=0.0)
            middle, late = spread([each["whole"] for each in got[1:]])
            yield Figure("large", f"{what}, p50", middle, target=target)
            yield Figure("large", f"{what}, p99", late)


def _start(what: str, data: Path) -> Iterator[Figure]:
    process, seconds = start(data, free_port())
    with MonitoredProcess(process):
        yield Figure("large", f"process start to first answer, {what}", seconds * 1e3)


def paths(sessions: int, longest: int) -> Sequence[tuple[str, str, float]]:
    middle = session_id(sessions // 2)
    return (
        ("first page of the list", "/api/sessions?limit=50", 20.0),
        (f"search, rare word ({RARE})", f"/api/sessions?query={RARE}", 50.0),
        (f"search, a word in every session ({COMMON})", f"/api/sessions?query={COMMON}", 50.0),
        ("open a session", f"/api/sessions/{middle}/messages", 20.0),
        (f"last page of {longest:,} messages", f"/api/sessions/{session_id(sessions)}/messages", 20.0),
    )


def start(data: Path, port: int) -> tuple["subprocess.Popen[bytes]", float]:
    """Start a server; the seconds until it answered the first list request."""
    command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--data-dir", str(data)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=bench_directory()) as own:
        log = Path(own) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        return process, wait_for(process, port, "/api/sessions?limit=20", log) - began
