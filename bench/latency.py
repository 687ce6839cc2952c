"""Measures what clients wait for: the first token, resuming, cancelling, and recovery after `kill -9`."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from bench.figures import Figure, FigureSteps, MissingFigure
from bench.load_client import spread
from bench.process_usage import MonitoredProcess
from bench.servers import STREAMING, RunningServer, configure, free_port, holdfast, native, request, wait_for
from bench.worker_process import BenchError, WorkerProcess, bench_directory

# ---- the first token ----


def measure_first_token(
    servers: Sequence[str], times: int, upstream: WorkerProcess, load: WorkerProcess
) -> FigureSteps:
    """One stream after the other on an idle server, from the request to the first token."""
    address = upstream.call("address")
    for name in servers:
        yield f"first token: {name}"
        try:
            with STREAMING[name](address) as served:
                upstream.call("begin", tokens=1, hold=False)
                load.call("ask", port=served.port, requests=served.prepare(5), pause=0.0)
                got = load.call("ask", port=served.port, requests=served.prepare(times), pause=0.0)
                middle, late = spread([each["token"] for each in got])
                yield Figure("first token", "request to first token, p50", middle, server=name)
                yield Figure("first token", "request to first token, p99", late, server=name)
        except BenchError as error:
            yield MissingFigure("first token", "request to first token", str(error), name)


# ---- attach, resume, replay ----


def measure_resume(events: int, times: int, upstream: WorkerProcess, load: WorkerProcess) -> FigureSteps:
    """Reading a run of this many events while it runs, after it ended, and from its middle."""
    yield f"a run of {events:,} events"
    with holdfast(upstream.call("address")) as served, httpx.Client(base_url=served.url, timeout=60) as http:
        upstream.call("begin", tokens=events, mixed=True)
        load.call("open", port=served.port, requests=native(served.port, 1), tokens=events)
        upstream.call("gather", streams=1)
        upstream.call("go")
        load.call("tokens")
        run = http.get("/api/runs?status=running").json()["items"][0]["id"]
        path = f"/api/runs/{run}/events"
        yield from _attached(served, f"{path}?after=0", events, "attach while it runs", times, upstream, load)
        upstream.call("finish")
        load.call("end")
        _until(lambda: http.get(f"/api/runs/{run}").json()["status"] == "complete")
        last = http.get(f"/api/runs/{run}").json()["last_seq"]
        if last < events:
            raise BenchError(f"{last} events were journaled, expected {events}")
        for what, after in (("replay of a finished run", 0), ("resume in its middle", last // 2)):
            yield f"{what}, {events:,} events"
            got = load.call(
                "ask",
                port=served.port,
                requests=[request(served.port, "GET", f"{path}?after={after}")] * times,
                pause=0.01,
            )
            yield from _figures(what, got)


def _attached(
    served: RunningServer, path: str, tokens: int, what: str, times: int, upstream: WorkerProcess, load: WorkerProcess
) -> FigureSteps:
    """The run does not end, so a stream is complete when the last token so far has arrived."""
    yield what
    with WorkerProcess("bench.load_client") as other:
        got = []
        for _ in range(times):
            other.call("open", port=served.port, requests=[request(served.port, "GET", path)], tokens=tokens)
            other.call("tokens")
            got.append(other.call("times")[0])
            other.call("drop")
    yield from _figures(what, got)


def _figures(what: str, got: Sequence[dict[str, float]]) -> Iterator[Figure]:
    first, whole = spread([each["first"] for each in got]), spread([each["whole"] for each in got])
    yield Figure("resume", f"{what}: first byte, p50", first[0], target=20.0)
    yield Figure("resume", f"{what}: whole, p50", whole[0], target=200.0)


# ---- cancel ----


def measure_cancel(streams: int, upstream: WorkerProcess, load: WorkerProcess) -> FigureSteps:
    """From a client's disconnect or cancel request until the upstream sees its connection closed."""
    with holdfast(upstream.call("address")) as served, httpx.Client(base_url=served.url, timeout=60) as http:
        for way in ("the client leaves", "POST cancel"):
            yield f"{way}, {streams} streams"
            upstream.call("begin", tokens=2000, rate=20.0)
            lifetime = "attached" if way == "the client leaves" else "detached"
            requests = native(served.port, streams, lifetime)
            load.call("open", port=served.port, requests=requests, tokens=2000)
            upstream.call("gather", streams=streams)
            upstream.call("go")
            time.sleep(0.5)
            if way == "the client leaves":
                asked = {int(n): at for n, at in load.call("leave", pause=0.01).items()}
            else:
                asked = _cancel_all(served, http, requests, load)
            closed = {int(n): at for n, at in upstream.call("closings", streams=streams).items()}
            took = [(closed[n] - asked[n]) * 1e3 for n in asked]
            middle, late = spread(took)
            yield Figure("cancel", f"{way}: upstream closed, p50", middle)
            yield Figure("cancel", f"{way}: upstream closed, p99", late, target=50.0)
            load.call("drop")


def _cancel_all(
    served: RunningServer, http: httpx.Client, requests: Sequence[str], load: WorkerProcess
) -> dict[int, float]:
    numbers = {each.split("/api/sessions/")[1].split("/")[0]: n for n, each in enumerate(requests)}
    found = http.get("/api/runs?status=running&limit=200").json()["items"]
    runs = [(numbers[run["session_id"]], run["id"]) for run in found if run["session_id"] in numbers]
    calls = [request(served.port, "POST", f"/api/runs/{rid}/cancel", {}) for _, rid in runs]
    got = load.call("ask", port=served.port, requests=calls, pause=0.01)
    return {number: each["sent"] for (number, _), each in zip(runs, got, strict=True)}


# ---- kill -9 ----


def measure_kill(runs: int, upstream: WorkerProcess, load: WorkerProcess) -> FigureSteps:
    """From the kill until a list is read and every run of the killed process is settled."""
    yield f"kill -9 with {runs:,} runs open"
    address = upstream.call("address")
    with tempfile.TemporaryDirectory(dir=bench_directory(), prefix="holdfast-bench-") as own:
        data = Path(own) / "data"
        with holdfast(address, data) as served:
            upstream.call("begin", tokens=50)
            load.call("open", port=served.port, requests=native(served.port, runs, "detached"), tokens=0)
            upstream.call("gather", streams=runs)
            upstream.call("go")
            with httpx.Client(base_url=served.url, timeout=60) as http:
                _until(lambda: _is_journaled(http, 50))
            os.kill(served.process.pid, signal.SIGKILL)
            killed = time.monotonic()
            served.process.process.wait()
        port, log = free_port(), Path(own) / "log"
        configure(data, address)
        command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--data-dir", str(data)]
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        with MonitoredProcess(process), httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            wait_for(process, port, "/api/sessions?limit=20", log)
            first = time.monotonic()
            left = http.get("/api/runs?status=running&limit=1").json()["items"]
            if left:
                _until(lambda: not http.get("/api/runs?status=running&limit=1").json()["items"])
            settled = time.monotonic()
            count = sum(1 for _ in _pages(http, "/api/runs?status=interrupted&limit=200"))
            if count != runs:
                raise BenchError(f"{count} of {runs} runs were settled as interrupted")
        yield Figure("kill -9", f"to the first read, {runs:,} runs open", (first - killed) * 1e3, target=3000)
        yield Figure("kill -9", f"to all {runs:,} runs settled", (settled - killed) * 1e3, target=3000)


def _is_journaled(http: httpx.Client, tokens: int) -> bool:
    """Whether the newest run, which was started last, has its last token in the journal."""
    run = http.get("/api/runs?status=running&limit=1").json()["items"]
    if not run:
        return False
    messages = http.get(f"/api/sessions/{run[0]['session_id']}/messages").json()["items"]
    return any(f"{tokens - 1:05d}." in part.get("text", "") for part in messages[-1]["parts"])


def _pages(http: httpx.Client, path: str) -> Iterator[Any]:
    cursor = ""
    while True:
        page = http.get(path + cursor).raise_for_status().json()
        yield from page["items"]
        if page["next"] is None:
            return
        cursor = f"&cursor={page['next']}"


def _until(done: Any) -> None:
    give_up_at = time.monotonic() + 120
    while not done():
        if time.monotonic() > give_up_at:
            raise BenchError("timed out after two minutes")
        time.sleep(0.01)
