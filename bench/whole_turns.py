"""Measures what a whole turn costs, as its user pays it: CPU from the request until the run is settled.

Unlike `token_cost`, nothing is left out: accepting, asking the model, streaming, ending and settling. Sessions
exist and have a title, as in the second turn of a conversation.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from bench.figures import Figure, MissingFigure
from bench.servers import STREAMING, RunningServer, ServerFactory, holdfast
from bench.worker_process import BenchError, WorkerProcess

OURS = ("Holdfast", "Holdfast /v1", "bare relay")
_SETTLE_TIME = 0.3
"""Seconds to wait for the settling of runs whose last byte has arrived."""
_STAMP_EVERY = 10
"""Tokens of which one has the time; the others have a word, as the text of an answer is indexed too."""
_LEAST_PER_SECOND = 300.0
_WITHOUT_MEMORY: Mapping[str, ServerFactory] = {"Holdfast": partial(holdfast, with_memory=False)}


@dataclass(frozen=True, slots=True)
class TurnScenario:
    name: str
    turns: int
    """Turns that start at once."""
    tokens: int
    rate: float | None = None
    chunked: bool = True
    waves: int = 1
    """How often it is repeated; the costs are divided by all turns."""
    target: float | None = None
    """Highest acceptable CPU relative to the relay."""
    target_ms: float | None = None
    """Highest acceptable CPU per turn."""
    peers: bool = False
    """Whether LiteLLM and Open WebUI are measured too."""


_WAVES = {1: {1: 25, 50: 25, 500: 15, 2000: 10}, 100: {1: 4, 50: 4, 500: 3, 2000: 2}, 1000: {}}
"""By turns at once and tokens; otherwise one."""
_TARGETS = {1: 2.0, 500: 1.0, 2000: 0.9}
"""Highest acceptable CPU relative to the relay, by tokens, for 100 turns at once."""


def _scenarios() -> Iterator[TurnScenario]:
    for turns, waves in _WAVES.items():
        for tokens in (1, 50, 500, 2000):
            for chunked in (True, False):
                yield TurnScenario(
                    f"{turns:,} turn{'s' if turns > 1 else ''} of {tokens:,} token{'s' if tokens > 1 else ''}"
                    + ("" if chunked else ", unchunked"),
                    turns,
                    tokens,
                    chunked=chunked,
                    waves=waves.get(tokens, 1),
                    target=_TARGETS.get(tokens) if turns == 100 else None,
                    target_ms=4.0 if (turns, tokens) == (100, 1) else None,
                    peers=chunked and turns <= 100,
                )
    yield TurnScenario("1,000 turns of 200 tokens x 20/s", 1000, 200, 20.0, target=0.8)


SCENARIOS = tuple(_scenarios())
QUICK = tuple(replace(s, waves=1) for s in SCENARIOS if s.turns == 100 and s.tokens in (1, 500))


@dataclass(frozen=True, slots=True)
class TurnSample:
    scenario: str
    server: str
    turns: int
    whole: int
    cpu_ms: float
    """Per turn."""
    first_p50_ms: float
    first_p99_ms: float
    end_p99_ms: float
    """Delay of the last token, p99."""
    turns_per_second: float
    peak_mb: float


def measure(scenario: TurnScenario, served: RunningServer, upstream: WorkerProcess, load: WorkerProcess) -> TurnSample:
    process, whole, first, end = served.process, 0, [], []
    upstream.call(
        "begin",
        tokens=scenario.tokens,
        rate=scenario.rate,
        hold=False,
        chunked=scenario.chunked,
        per_write=1,
        stamp_every=_STAMP_EVERY,
    )
    used = wall = 0.0
    peak = 0.0
    for _ in range(scenario.waves):
        requests = served.prepare(scenario.turns)
        try:
            with process.peak():
                before, began = process.cpu(), time.monotonic()
                load.call("open", port=served.port, requests=requests, tokens=scenario.tokens)
                load.call("end")
                wall += time.monotonic() - began
                time.sleep(_SETTLE_TIME)
                used += process.cpu() - before
        finally:
            load.call("drop")
        got = load.call("result")
        whole, peak = whole + got["whole"], max(peak, process.peak_mb)
        first.append(got["first_ms"])
        end.append(got["end_ms"][1])
    turns = scenario.turns * scenario.waves
    return TurnSample(
        scenario.name,
        served.name,
        turns,
        whole,
        used / turns * 1e3,
        median(p50 for p50, _ in first),
        median(p99 for _, p99 in first),
        median(end),
        turns / wall,
        peak,
    )


def steps(scenarios: Sequence[TurnScenario], servers: Iterable[str], rounds: int) -> int:
    return rounds * sum(1 for s in scenarios for name in servers if name in OURS or s.peers)


def run(
    scenarios: Sequence[TurnScenario], servers: Sequence[str], rounds: int, upstream: WorkerProcess, load: WorkerProcess
) -> Iterator[TurnSample | MissingFigure | str]:
    """Yields the description of each step, then its sample."""
    address = upstream.call("address")
    with ExitStack() as stack:
        served: dict[str, RunningServer] = {}
        for name in servers:
            yield f"starting {name}"
            try:
                served[name] = stack.enter_context(_WITHOUT_MEMORY.get(name, STREAMING[name])(address))
                measure(TurnScenario("", 4, 20), served[name], upstream, load)
            except BenchError as error:
                yield MissingFigure("turns", "whole turns", str(error), name)
        for _ in range(rounds):
            for scenario in scenarios:
                for name, server in served.items():
                    if name not in OURS and not scenario.peers:
                        continue
                    yield f"{scenario.name}: {name}"
                    try:
                        yield measure(scenario, server, upstream, load)
                    except BenchError as error:
                        yield MissingFigure("turns", scenario.name, str(error), name)


def saturate(
    servers: Sequence[str], clients: int, turns: int, upstream: WorkerProcess, load: WorkerProcess
) -> Iterator[Figure | MissingFigure | str]:
    """One-token turns as fast as they are answered, one after the other for each client, each in a session of its
    own."""
    what = f"1-token turns per second, {clients} clients"
    for name in servers:
        yield f"{what}: {name}"
        try:
            with _WITHOUT_MEMORY.get(name, STREAMING[name])(upstream.call("address")) as served:
                measure(TurnScenario("", 4, 20), served, upstream, load)
                upstream.call("begin", tokens=1, hold=False, per_write=1)
                got = load.call("send_all", port=served.port, requests=served.prepare(turns), tokens=1, clients=clients)
                if got["whole"] < turns:
                    raise BenchError(f"{turns - got['whole']} turns were not whole")
                least = _LEAST_PER_SECOND if name == "Holdfast" else None
                yield Figure("turns", what, got["whole"] / got["seconds"], "/s", least=least, server=name)
        except BenchError as error:
            yield MissingFigure("turns", what, str(error), name)


def first_token_added(samples: Sequence[TurnSample]) -> list[Figure]:
    """How much later than the relay's the first token of a single turn is."""
    found = medians(samples)
    ours, relay = (found.get(("1 turn of 1 token", name)) for name in ("Holdfast", "bare relay"))
    if ours is None or relay is None:
        return []
    added = ours.first_p50_ms - relay.first_p50_ms
    return [Figure("turns", "first token of a single turn, above the relay's, p50", added, target=5.0)]


def medians(samples: Sequence[TurnSample]) -> Mapping[tuple[str, str], TurnSample]:
    """Per scenario and server, the sample with the median cost, with the median delays of all samples."""
    found: dict[tuple[str, str], TurnSample] = {}
    for key in dict.fromkeys((s.scenario, s.server) for s in samples):
        some = sorted((s for s in samples if (s.scenario, s.server) == key), key=lambda s: s.cpu_ms)
        found[key] = replace(
            some[(len(some) - 1) // 2],
            whole=min(s.whole for s in some),
            first_p50_ms=median(s.first_p50_ms for s in some),
            first_p99_ms=median(s.first_p99_ms for s in some),
            end_p99_ms=median(s.end_p99_ms for s in some),
            turns_per_second=median(s.turns_per_second for s in some),
            peak_mb=max(s.peak_mb for s in some),
        )
    return found
