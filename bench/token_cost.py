"""Measures what a token costs from the model to the client (CPU, delay, memory), for each server in turn.

A measurement has three stages with separate CPU counts: all streams are opened and wait at the upstream; the upstream
sends all tokens until every client has received them; the streams end.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from bench.figures import MissingFigure
from bench.servers import STREAMING, RunningServer, ServerFactory, holdfast
from bench.worker_process import BenchError, WorkerProcess

OURS = ("Holdfast", "Holdfast /v1", "bare relay")
PEERS = ("LiteLLM proxy", "Open WebUI")
_SETTLE_TIME = 0.3
"""Seconds to wait for the work that a stage has started."""
_WITHOUT_MEMORY: Mapping[str, ServerFactory] = {"Holdfast": partial(holdfast, with_memory=False)}
"""Holdfast commits a session to memory after ten idle minutes, which asks the model. This part takes longer, so those
requests would disturb later measurements."""


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    streams: int
    tokens: int
    rate: float | None
    target: float | None = None
    """Highest acceptable CPU per token relative to the relay."""
    peers: int = 0
    """Tokens per stream for the slower peers; 0 leaves them out."""
    together: bool = False
    """All streams send a token at the same moment."""


SCENARIOS = (
    Scenario("1 stream, full speed", 1, 20_000, None),
    Scenario("10 streams, full speed", 10, 5_000, None),
    Scenario("100 streams, full speed", 100, 1_000, None, 1.0, 100),
    Scenario("1,000 streams, full speed", 1000, 200, None),
    Scenario("1 stream x 20/s", 1, 100, 20.0),
    Scenario("10 streams x 20/s", 10, 100, 20.0),
    Scenario("100 streams x 20/s", 100, 100, 20.0, 0.8, 60),
    Scenario("300 streams x 20/s", 300, 100, 20.0, 0.8),
    Scenario("1,000 streams x 20/s", 1000, 100, 20.0, 0.8),
    Scenario("100 streams x 20/s, in step", 100, 100, 20.0, 0.8, 60, together=True),
    Scenario("300 streams x 20/s, in step", 300, 100, 20.0, 0.8, together=True),
    Scenario("1,000 streams x 20/s, in step", 1000, 100, 20.0, 0.8, together=True),
)
QUICK = tuple(
    replace(s, tokens=max(10, s.tokens // 5), peers=s.peers and 20)
    for s in SCENARIOS
    if s.name in ("100 streams, full speed", "100 streams x 20/s")
)


@dataclass(frozen=True, slots=True)
class Sample:
    scenario: str
    server: str
    streams: int
    tokens: int
    whole: int
    """Streams that arrived complete and in order."""
    cpu_us_per_token: float
    cpu_ms_per_begin: float
    cpu_ms_per_end: float
    mid_p50_ms: float
    mid_p99_ms: float
    end_p50_ms: float
    end_p99_ms: float
    tokens_per_second: float
    peak_mb: float
    upstream_late_ms: float
    """How late the upstream itself was, p99."""


def measure(scenario: Scenario, served: RunningServer, upstream: WorkerProcess, load: WorkerProcess) -> Sample:
    streams, process = scenario.streams, served.process
    requests = served.prepare(streams)
    upstream.call("begin", tokens=scenario.tokens, rate=scenario.rate, together=scenario.together)
    try:
        with process.peak():
            at_rest = process.cpu()
            load.call("open", port=served.port, requests=requests, tokens=scenario.tokens)
            upstream.call("gather", streams=streams)
            time.sleep(_SETTLE_TIME)
            begun = process.cpu()
            upstream.call("go")
            load.call("tokens")
            carried = process.cpu()
            upstream.call("finish")
            load.call("end")
            time.sleep(_SETTLE_TIME)
            ended = process.cpu()
    finally:
        load.call("drop")
    got = load.call("result")
    total = streams * scenario.tokens
    return Sample(
        scenario.name,
        served.name,
        streams,
        total,
        got["whole"],
        (carried - begun) / total * 1e6,
        (begun - at_rest) / streams * 1e3,
        (ended - carried) / streams * 1e3,
        got["mid_ms"][0],
        got["mid_ms"][1],
        got["end_ms"][0],
        got["end_ms"][1],
        total / got["wall"] if got["wall"] else float("nan"),
        process.peak_mb,
        upstream.call("lateness"),
    )


def steps(scenarios: Sequence[Scenario], servers: Iterable[str], rounds: int) -> int:
    return rounds * sum(1 for s in scenarios for name in servers if name in OURS or s.peers)


def run(
    scenarios: Sequence[Scenario], servers: Sequence[str], rounds: int, upstream: WorkerProcess, load: WorkerProcess
) -> Iterator[Sample | MissingFigure | str]:
    """Yields the description of each step, then its sample. Servers that are not being measured are idle."""
    address = upstream.call("address")
    with ExitStack() as stack:
        served: dict[str, RunningServer] = {}
        absent: dict[str, str] = {}
        for name in servers:
            yield f"starting {name}"
            try:
                served[name] = stack.enter_context(_WITHOUT_MEMORY.get(name, STREAMING[name])(address))
            except BenchError as error:
                absent[name] = str(error)
        for number in range(rounds):
            for scenario in scenarios:
                for name in servers:
                    if name not in OURS and not scenario.peers:
                        continue
                    yield f"{scenario.name}: {name}"
                    asked = scenario if name in OURS else replace(scenario, tokens=scenario.peers)
                    if name in absent:
                        yield MissingFigure("tokens", scenario.name, absent[name], name)
                        continue
                    try:
                        if number == 0:
                            warm_up(served[name], upstream, load)
                        yield measure(asked, served[name], upstream, load)
                    except BenchError as error:
                        yield MissingFigure("tokens", scenario.name, str(error), name)


def warm_up(served: RunningServer, upstream: WorkerProcess, load: WorkerProcess) -> None:
    """Exclude the cost of first imports and connections from the measurement."""
    measure(Scenario("", 4, 20, None), served, upstream, load)


def medians(samples: Sequence[Sample]) -> Mapping[tuple[str, str], Sample]:
    """Per scenario and server, the sample with the median cost, with the median delays of all samples."""
    found: dict[tuple[str, str], Sample] = {}
    for key in dict.fromkeys((s.scenario, s.server) for s in samples):
        some = sorted((s for s in samples if (s.scenario, s.server) == key), key=lambda s: s.cpu_us_per_token)
        found[key] = replace(
            some[(len(some) - 1) // 2],
            whole=min(s.whole for s in some),
            mid_p50_ms=median(s.mid_p50_ms for s in some),
            mid_p99_ms=median(s.mid_p99_ms for s in some),
            end_p50_ms=median(s.end_p50_ms for s in some),
            end_p99_ms=median(s.end_p99_ms for s in some),
            peak_mb=max(s.peak_mb for s in some),
        )
    return found
