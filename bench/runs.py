"""What a client waits for: the first token, a run that is taken up again, a stop, a server that was killed."""

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

from bench.child import Child, Trouble, directory
from bench.figures import Figure, Missing
from bench.load import spread
from bench.process import Watched
from bench.targets import STREAMING, Served, configure, free_port, holdfast, native, request, wait_for

# ---- the first token ----


def first_token(servers: Sequence[str], times: int, upstream: Child, load: Child) -> Iterator[Figure | Missing | str]:
    """One stream after the other on an idle server, from the request to the first token."""
    address = upstream.tell("address")
    for name in servers:
        yield f"first token: {name}"
        try:
            with STREAMING[name](address) as served:
                upstream.tell("begin", tokens=1, hold=False)
                load.tell("ask", port=served.port, requests=served.prepare(5), pause=0.0)
                got = load.tell("ask", port=served.port, requests=served.prepare(times), pause=0.0)
                middle, late = spread([each["token"] for each in got])
                yield Figure("first token", "request to first token, p50", middle, server=name)
                yield Figure("first token", "request to first token, p99", late, server=name)
        except Trouble as trouble:
            yield Missing("first token", "request to first token", str(trouble), name)


# ---- attach, resume, replay ----


def resuming(events: int, times: int, upstream: Child, load: Child) -> Iterator[Figure | Missing | str]:
    """A run of so many events: while it is under way, and when it is over."""
    yield f"a run of {events:,} events"
    with holdfast(upstream.tell("address")) as served, httpx.Client(base_url=served.url, timeout=60) as http:
        upstream.tell("begin", tokens=events, mixed=True)
        load.tell("open", port=served.port, requests=native(served.port, 1), tokens=events)
        upstream.tell("gather", streams=1)
        upstream.tell("go")
        load.tell("tokens")
        run = http.get("/api/runs?status=running").json()["items"][0]["id"]
        path = f"/api/runs/{run}/events"
        yield from _attached(served, f"{path}?after=0", events, "attach while it runs", times, upstream, load)
        upstream.tell("finish")
        load.tell("end")
        _until(lambda: http.get(f"/api/runs/{run}").json()["status"] == "complete")
        last = http.get(f"/api/runs/{run}").json()["last_seq"]
        if last < events:
            raise Trouble(f"{last} events were journalled, {events} were wanted")
        for what, after in (("replay of a finished run", 0), ("resume in its middle", last // 2)):
            yield f"{what}, {events:,} events"
            got = load.tell(
                "ask",
                port=served.port,
                requests=[request(served.port, "GET", f"{path}?after={after}")] * times,
                pause=0.01,
            )
            yield from _both(what, got)


def _attached(
    served: Served, path: str, tokens: int, what: str, times: int, upstream: Child, load: Child
) -> Iterator[Figure | Missing | str]:
    """The run goes on, so the answer does not end: whole is the last token there is."""
    yield what
    with Child("bench.load") as other:
        got = []
        for _ in range(times):
            other.tell("open", port=served.port, requests=[request(served.port, "GET", path)], tokens=tokens)
            other.tell("tokens")
            got.append(other.tell("times")[0])
            other.tell("drop")
    yield from _both(what, got)


def _both(what: str, got: Sequence[dict[str, float]]) -> Iterator[Figure]:
    first, whole = spread([each["first"] for each in got]), spread([each["whole"] for each in got])
    yield Figure("resume", f"{what}: first byte, p50", first[0], target=20.0)
    yield Figure("resume", f"{what}: whole, p50", whole[0], target=200.0)


# ---- stopping ----


def cancelling(streams: int, upstream: Child, load: Child) -> Iterator[Figure | Missing | str]:
    """From when a client leaves, or asks for a stop, to when the model's server sees its connection close."""
    with holdfast(upstream.tell("address")) as served, httpx.Client(base_url=served.url, timeout=60) as http:
        for way in ("the client leaves", "POST cancel"):
            yield f"{way}, {streams} streams"
            upstream.tell("begin", tokens=2000, rate=20.0)
            lifetime = "attached" if way == "the client leaves" else "detached"
            requests = native(served.port, streams, lifetime)
            load.tell("open", port=served.port, requests=requests, tokens=2000)
            upstream.tell("gather", streams=streams)
            upstream.tell("go")
            time.sleep(0.5)
            if way == "the client leaves":
                asked = {int(n): at for n, at in load.tell("leave", pause=0.01).items()}
            else:
                asked = _cancel_all(served, http, requests, load)
            closed = {int(n): at for n, at in upstream.tell("closings", streams=streams).items()}
            took = [(closed[n] - asked[n]) * 1e3 for n in asked]
            middle, late = spread(took)
            yield Figure("cancel", f"{way}: upstream closed, p50", middle)
            yield Figure("cancel", f"{way}: upstream closed, p99", late, target=50.0)
            load.tell("drop")


def _cancel_all(served: Served, http: httpx.Client, requests: Sequence[str], load: Child) -> dict[int, float]:
    numbers = {each.split("/api/sessions/")[1].split("/")[0]: n for n, each in enumerate(requests)}
    found = http.get("/api/runs?status=running&limit=200").json()["items"]
    runs = [(numbers[run["session_id"]], run["id"]) for run in found if run["session_id"] in numbers]
    calls = [request(served.port, "POST", f"/api/runs/{rid}/cancel", {}) for _, rid in runs]
    got = load.tell("ask", port=served.port, requests=calls, pause=0.01)
    return {number: each["sent"] for (number, _), each in zip(runs, got, strict=True)}


# ---- kill -9 ----


def killing(runs: int, upstream: Child, load: Child) -> Iterator[Figure | Missing | str]:
    """From the kill to the first list that is read, with every run of the dead process settled."""
    yield f"kill -9 with {runs:,} runs open"
    address = upstream.tell("address")
    with tempfile.TemporaryDirectory(dir=directory(), prefix="holdfast-bench-") as own:
        data = Path(own) / "data"
        with holdfast(address, data) as served:
            upstream.tell("begin", tokens=50)
            load.tell("open", port=served.port, requests=native(served.port, runs, "detached"), tokens=0)
            upstream.tell("gather", streams=runs)
            upstream.tell("go")
            with httpx.Client(base_url=served.url, timeout=60) as http:
                _until(lambda: _journalled(http, 50))
            os.kill(served.watched.pid, signal.SIGKILL)
            killed = time.monotonic()
            served.watched.process.wait()
        port, log = free_port(), Path(own) / "log"
        configure(data, address)
        command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--data-dir", str(data)]
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        with Watched(process), httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            wait_for(process, port, "/api/sessions?limit=20", log)
            first = time.monotonic()
            left = http.get("/api/runs?status=running&limit=1").json()["items"]
            if left:
                _until(lambda: not http.get("/api/runs?status=running&limit=1").json()["items"])
            settled = time.monotonic()
            count = sum(1 for _ in _pages(http, "/api/runs?status=interrupted&limit=200"))
            if count != runs:
                raise Trouble(f"{count} of {runs} runs were settled as interrupted")
        yield Figure("kill -9", f"to the first read, {runs:,} runs open", (first - killed) * 1e3, target=3000)
        yield Figure("kill -9", f"to all {runs:,} runs settled", (settled - killed) * 1e3, target=3000)


def _journalled(http: httpx.Client, tokens: int) -> bool:
    """Whether the newest run has its last token in the journal: it was started last."""
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
            raise Trouble("it did not get there within two minutes")
        time.sleep(0.01)
