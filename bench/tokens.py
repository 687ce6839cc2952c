"""What a token costs on its way from a model to a client: CPU, delay, memory; every server in turn, round after round.

A measurement has three stages, each on its own account. All streams are begun, and wait at the upstream; then the
upstream sends all tokens, until every client has every one; then it ends the streams.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from bench.child import Child, Trouble
from bench.figures import Missing
from bench.targets import STREAMING, Served, Start, holdfast

OURS = ("Holdfast", "Holdfast /v1", "bare relay")
PEERS = ("LiteLLM proxy", "Open WebUI")
_QUIET = 0.3
"""Seconds after which what a stage has started is over."""
_LASTING: Mapping[str, Start] = {"Holdfast": partial(holdfast, remembers=False)}
"""Holdfast remembers a conversation that has been idle for ten minutes, and asks the model what is worth it. This part
takes longer and leaves thousands behind: they would be remembered while others are measured."""


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    streams: int
    tokens: int
    rate: float | None
    target: float | None = None
    """CPU per token, ours over the relay's, at most."""
    peers: int = 0
    """Tokens per stream for the peers, which take long; 0: they are not asked."""
    together: bool = False
    """All streams say a token in the same moment."""


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
    """Streams that came through complete and in order."""
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


def measure(scenario: Scenario, served: Served, upstream: Child, load: Child) -> Sample:
    streams, watched = scenario.streams, served.watched
    requests = served.prepare(streams)
    upstream.tell("begin", tokens=scenario.tokens, rate=scenario.rate, together=scenario.together)
    try:
        with watched.peak():
            at_rest = watched.cpu()
            load.tell("open", port=served.port, requests=requests, tokens=scenario.tokens)
            upstream.tell("gather", streams=streams)
            time.sleep(_QUIET)
            begun = watched.cpu()
            upstream.tell("go")
            load.tell("tokens")
            carried = watched.cpu()
            upstream.tell("finish")
            load.tell("end")
            time.sleep(_QUIET)
            ended = watched.cpu()
    finally:
        load.tell("drop")
    got = load.tell("result")
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
        watched.peak_mb,
        upstream.tell("lateness"),
    )


def steps(scenarios: Sequence[Scenario], servers: Iterable[str], rounds: int) -> int:
    return rounds * sum(1 for s in scenarios for name in servers if name in OURS or s.peers)


def run(
    scenarios: Sequence[Scenario], servers: Sequence[str], rounds: int, upstream: Child, load: Child
) -> Iterator[Sample | Missing | str]:
    """Gives what it is about to do as text, and what came of it. Servers that are not being measured stand by."""
    address = upstream.tell("address")
    with ExitStack() as stack:
        served: dict[str, Served] = {}
        absent: dict[str, str] = {}
        for name in servers:
            yield f"starting {name}"
            try:
                served[name] = stack.enter_context(_LASTING.get(name, STREAMING[name])(address))
            except Trouble as trouble:
                absent[name] = str(trouble)
        for number in range(rounds):
            for scenario in scenarios:
                for name in servers:
                    if name not in OURS and not scenario.peers:
                        continue
                    yield f"{scenario.name}: {name}"
                    asked = scenario if name in OURS else replace(scenario, tokens=scenario.peers)
                    if name in absent:
                        yield Missing("tokens", scenario.name, absent[name], name)
                        continue
                    try:
                        if number == 0:
                            warm_up(served[name], upstream, load)
                        yield measure(asked, served[name], upstream, load)
                    except Trouble as trouble:
                        yield Missing("tokens", scenario.name, str(trouble), name)


def warm_up(served: Served, upstream: Child, load: Child) -> None:
    """What is imported, opened and learnt with the first few streams is not the token's cost."""
    measure(Scenario("", 4, 20, None), served, upstream, load)


def medians(samples: Sequence[Sample]) -> Mapping[tuple[str, str], Sample]:
    """Of each scenario and server the sample whose cost is in the middle, with the medians of all that can be late."""
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
