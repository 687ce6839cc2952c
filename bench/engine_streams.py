"""Measures CPU per token inside the engine: an agent that emits tokens, one subscriber per run, `synchronous=FULL`.

The figure is the CPU time of the whole process from the first token to the last: agent, engine, SQLite and a
subscriber that counts tokens. Accepting and ending runs is excluded. Each scenario runs in a process of its own.

Results from before November 17, 2026 used the scripted agent, which takes about 0.1 us more for each token.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import anyio
import uvloop

from bench.shared_timers import SharedTimers
from holdfast.app import open_node, tune_gc
from holdfast.core.events import Entry, TextDelta
from holdfast.core.ids import RunId
from holdfast.core.parts import TextPart
from holdfast.engine.engine import Engine
from holdfast.engine.settings import EngineSettings
from holdfast.ports.agent import AgentOutput, Turn

_SPACES = 3
"""Spaces in a frame without tokens, after `id:`, `event:` and `data:`. Each token adds one."""


@dataclass(frozen=True, slots=True)
class EngineScenario:
    name: str
    runs: int
    tokens: int
    rate: float | None
    spread: bool = False
    """Runs start at different moments within one token interval; otherwise together."""


@dataclass(frozen=True, slots=True)
class EngineResult:
    scenario: str
    runs: int
    tokens: int
    cpu_us_per_token: float
    tokens_per_second: float
    events_per_token: float
    events_per_commit: float
    ending_ms_per_run: float
    peak_mb: float
    late_p50_ms: float
    late_p99_ms: float


SCENARIOS = (
    EngineScenario("1 run, full speed", 1, 100_000, None),
    EngineScenario("100 runs, full speed", 100, 5_000, None),
    EngineScenario("1,000 runs, full speed", 1000, 500, None),
    EngineScenario("100 runs x 20/s, begun together", 100, 160, 20.0),
    EngineScenario("100 runs x 20/s, spread", 100, 160, 20.0, spread=True),
    EngineScenario("1,000 runs x 20/s, begun together", 1000, 160, 20.0),
    EngineScenario("1,000 runs x 20/s, spread", 1000, 160, 20.0, spread=True),
)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def offset(scenario: EngineScenario, number: int) -> float:
    return number / scenario.runs / scenario.rate if scenario.spread and scenario.rate else 0.0


class CommonStart(SharedTimers):
    """Counts the time of all runs from one moment. Otherwise the milliseconds that a hundred tasks take to wake would
    separate their tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.start = 0.0

    def now(self) -> float:
        return self.start


class PacedAgent:
    """Waits for `go`, streams tokens and waits for `finish`, so that streaming and ending are separate."""

    can_park = can_resume = can_steer = False

    def __init__(self, scenario: EngineScenario, timers: SharedTimers) -> None:
        self._scenario = scenario
        self._timers = timers
        self.go = anyio.Event()
        self.finish = anyio.Event()

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        def emit(n: int) -> bool:
            return out.write_nowait(TextDelta(f"t{n} "))

        await self.go.wait()
        count, rate, n = self._scenario.tokens, self._scenario.rate, 0
        start = self._timers.now() + offset(self._scenario, turn.run.settings)
        while n < count:
            if rate is None:
                n = next((m + 1 for m in range(n, count) if not emit(m)), count)
            else:
                n = await self._timers.emit_at_rate(start, rate, range(n, count), emit)
            await out.wait_for_room()
        await self.finish.wait()
        return "stop"


class SubscriberProgress:
    """Counts subscribers that are connected, and those that have received all tokens."""

    def __init__(self, size: int) -> None:
        self.all_there = anyio.Event()
        self.all_done = anyio.Event()
        self._missing = self._reading = size

    def came(self) -> None:
        self._missing -= 1
        if not self._missing:
            self.all_there.set()

    def done(self) -> None:
        self._reading -= 1
        if not self._reading:
            self.all_done.set()


class Subscriber:
    """Reads one run, counts its tokens and, if there is a rate, records how late the last of each batch is. It is part
    of the measurement, so it does nothing else."""

    __slots__ = ("engine", "expected", "interval", "late", "number", "progress", "rid", "started", "tokens")

    def __init__(
        self, engine: Engine, scenario: EngineScenario, number: int, rid: RunId, progress: SubscriberProgress
    ) -> None:
        self.engine = engine
        self.expected = scenario.tokens
        self.number = number
        self.rid = rid
        self.progress = progress
        self.started = 0.0
        self.tokens = 0
        self.interval = 1 / scenario.rate if scenario.rate else 0.0
        self.late: list[float] = []

    async def follow(self) -> None:
        async with self.engine.subscriptions.watch(self.rid) as subscription:
            while (entries := await subscription.next()) is not None:
                self.take(entries)
                if entries[0].seq == 1:
                    self.progress.came()
                await subscription.follow(self.take)

    def take(self, entries: Sequence[Entry]) -> bool:
        tokens = self.tokens
        for _, frame in entries:
            tokens += frame.count(b" ") - _SPACES
        if tokens == self.tokens:
            return True
        self.tokens = tokens
        if self.interval:
            self.late.append(perf_counter() - self.started - (tokens - 1) * self.interval)
        if tokens == self.expected:
            self.progress.done()
        return True


async def measure(scenario: EngineScenario, directory: Path) -> EngineResult:
    """Accept all runs, then stream, then end them, with separate CPU counts."""
    pace, progress = CommonStart(), SubscriberProgress(scenario.runs)
    agent = PacedAgent(scenario, pace)
    settings = EngineSettings(max_runs=2000, max_output=1 << 30)
    tune_gc()
    node = await open_node(directory, {"chat": agent}, settings)
    async with anyio.create_task_group() as tg:
        await tg.start(node.engine.run)
        engine, writer = node.engine, node.engine.writer
        watching: list[Subscriber] = []
        for number in range(scenario.runs):
            session = await engine.sessions.create()
            rid = (await engine.runs.submit(session.id, [TextPart("go")], settings=number)).run.id
            watching.append(Subscriber(engine, scenario, number, rid, progress))
        async with anyio.create_task_group() as subscribers:
            for subscriber in watching:
                subscribers.start_soon(subscriber.follow)
            await progress.all_there.wait()
            commits, events, cpu, start = writer.commits, writer.events, cpu_seconds(), perf_counter()
            for subscriber in watching:
                subscriber.started = start + offset(scenario, subscriber.number)
            pace.start = anyio.current_time()
            agent.go.set()
            await progress.all_done.wait()
            wall, cpu = perf_counter() - start, cpu_seconds() - cpu
            commits, events = writer.commits - commits, writer.events - events
            ending = cpu_seconds()
            agent.finish.set()
        while node.engine.supervisor.executing:  # noqa: ASYNC110 - there is no event to wait for
            await anyio.sleep(0.01)
        ending = cpu_seconds() - ending
        node.engine.stop()
    await node.close()
    total = scenario.runs * scenario.tokens
    late = sorted(x for subscriber in watching for x in subscriber.late)
    return EngineResult(
        scenario.name,
        scenario.runs,
        total,
        cpu * 1e6 / total,
        total / wall,
        events / total,
        events / max(commits, 1),
        ending * 1e3 / scenario.runs,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        _percentile(late, 0.50) * 1000,
        _percentile(late, 0.99) * 1000,
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, math.floor(len(ordered) * share))] if ordered else float("nan")


def middle(results: Sequence[EngineResult]) -> EngineResult:
    """The result with the median cost."""
    ordered = sorted(results, key=lambda r: r.cpu_us_per_token)
    return ordered[(len(ordered) - 1) // 2]


def in_process(scenario: EngineScenario) -> EngineResult:
    """Measure in a new process, so that memory and CPU are the scenario's own."""
    command = [sys.executable, "-m", "bench.engine_streams", json.dumps(asdict(scenario))]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
    return EngineResult(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one scenario; prints JSON.")
    parser.add_argument("scenario")
    scenario = EngineScenario(**json.loads(parser.parse_args().scenario))
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as directory:
        result = uvloop.run(measure(scenario, Path(directory)))
    sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
