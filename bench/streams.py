"""CPU per token from the agent to the subscriber: the scripted agent, one subscriber a run, `synchronous=FULL`.

Measured is the time of the whole process from the first token to the last: the agent with its timers, the engine,
SQLite, and a subscriber that counts what it reads. Accepting the runs, and ending them, is not in it.

Each scenario runs in a process of its own, so that its CPU time (user and system, all threads) is its own.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import anyio
import uvloop

from holdfast.agents.pace import Pace
from holdfast.agents.scripted import Action, AgentTable, Meet, ScriptedAgent, Tokens
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.core.parts import Text
from holdfast.engine.service import Service
from holdfast.engine.settings import Settings
from holdfast.ports import Turn
from holdfast.wiring import open_node, tune_gc

GO, FINISH = "go", "finish"
_SPACES = 3
"""Of a frame without tokens: behind `id:`, `event:` and `data:`. Each token ends with one more."""


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    runs: int
    tokens: int
    rate: float | None
    spread: bool = False
    """Runs begin at different moments within a token's time, as strangers would; otherwise together."""


@dataclass(frozen=True, slots=True)
class Result:
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
    Scenario("1 run, full speed", 1, 100_000, None),
    Scenario("100 runs, full speed", 100, 5_000, None),
    Scenario("1,000 runs, full speed", 1000, 500, None),
    Scenario("100 runs x 20/s, begun together", 100, 160, 20.0),
    Scenario("100 runs x 20/s, spread", 100, 160, 20.0, spread=True),
    Scenario("1,000 runs x 20/s, begun together", 1000, 160, 20.0),
    Scenario("1,000 runs x 20/s, spread", 1000, 160, 20.0, spread=True),
)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def script(scenario: Scenario) -> Callable[[Turn], Sequence[Action]]:
    """What each run plays: all wait for the start, stream, and wait again, so that streaming and ending are measured
    apart."""

    def play(turn: Turn) -> Sequence[Action]:
        return [Meet(GO), Tokens(scenario.tokens, scenario.rate, offset(scenario, turn.run.settings)), Meet(FINISH)]

    return play


def offset(scenario: Scenario, number: int) -> float:
    return number / scenario.runs / scenario.rate if scenario.spread and scenario.rate else 0.0


class CommonStart(Pace):
    """Counts everybody's time from one moment, that of the start: a hundred tasks take some milliseconds to wake, and
    would be as far apart at every token after it."""

    __slots__ = ("start",)

    def __init__(self) -> None:
        super().__init__()
        self.start = 0.0

    def now(self) -> float:
        return self.start


class Audience:
    """Counts the subscribers that are there, and those that have all tokens of their run."""

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
    """Reads one run and counts its tokens; notes how late the last of each batch came, where there is a pace to be
    late against. It is part of what is measured, so it does no more than that."""

    __slots__ = ("audience", "expected", "interval", "late", "number", "rid", "service", "started", "tokens")

    def __init__(self, service: Service, scenario: Scenario, number: int, rid: RunId, audience: Audience) -> None:
        self.service = service
        self.expected = scenario.tokens
        self.number = number
        self.rid = rid
        self.audience = audience
        self.started = 0.0
        self.tokens = 0
        self.interval = 1 / scenario.rate if scenario.rate else 0.0
        self.late: list[float] = []

    async def follow(self) -> None:
        async with self.service.watch(self.rid) as subscription:
            while (entries := await subscription.next()) is not None:
                self.take(entries)
                if entries[0].seq == 1:
                    self.audience.came()
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
            self.audience.done()
        return True


async def measure(scenario: Scenario, directory: Path) -> Result:
    """Accept all runs first, then stream, then end them, each on its own account."""
    pace, audience = CommonStart(), Audience(scenario.runs)
    agent = ScriptedAgent(script(scenario), pace=pace)
    settings = Settings(max_runs=2000, max_output=1 << 30)
    tune_gc()
    node = await open_node(directory, AgentTable({"chat": agent}), settings)
    async with anyio.create_task_group() as tg:
        await tg.start(node.engine.run)
        service, writer = node.engine.service, node.engine.writer
        watching: list[Subscriber] = []
        for number in range(scenario.runs):
            session = await service.create_session()
            rid = (await service.submit(session.id, [Text("go")], settings=number)).run.id
            watching.append(Subscriber(service, scenario, number, rid, audience))
        async with anyio.create_task_group() as subscribers:
            for subscriber in watching:
                subscribers.start_soon(subscriber.follow)
            await audience.all_there.wait()
            commits, events, cpu, start = writer.commits, writer.events, cpu_seconds(), perf_counter()
            for subscriber in watching:
                subscriber.started = start + offset(scenario, subscriber.number)
            pace.start = anyio.current_time()
            agent.gate(GO).open.set()
            await audience.all_done.wait()
            wall, cpu = perf_counter() - start, cpu_seconds() - cpu
            commits, events = writer.commits - commits, writer.events - events
            ending = cpu_seconds()
            agent.gate(FINISH).open.set()
        while node.engine.supervisor.executing:  # noqa: ASYNC110 - nothing rings for this
            await anyio.sleep(0.01)
        ending = cpu_seconds() - ending
        node.engine.stop()
    await node.close()
    total = scenario.runs * scenario.tokens
    late = sorted(x for subscriber in watching for x in subscriber.late)
    return Result(
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


def middle(results: Sequence[Result]) -> Result:
    """The one whose cost is the median."""
    ordered = sorted(results, key=lambda r: r.cpu_us_per_token)
    return ordered[(len(ordered) - 1) // 2]


def in_process(scenario: Scenario) -> Result:
    """Measure in a child, so that memory and CPU are the scenario's own."""
    command = [sys.executable, "-m", "bench.streams", json.dumps(asdict(scenario))]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
    return Result(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one scenario; prints JSON.")
    parser.add_argument("scenario")
    scenario = Scenario(**json.loads(parser.parse_args().scenario))
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as directory:
        result = uvloop.run(measure(scenario, Path(directory)))
    sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
