"""Compares storage: SQLite, PostgreSQL and Redis, with one node and with several. Each node is a process.

`append`    commits one event of each of 100 runs as fast as the journal accepts them: events per second.
`stream`    100 runs per node at 20 tokens per second, from the agent to a subscriber: how late a token is.

A node reports that it is ready, waits for the start signal, and prints its result, so that all start together.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import pytest
import uvloop

from bench.engine_streams import EngineScenario, PacedAgent, Subscriber, SubscriberProgress, cpu_seconds, offset
from bench.shared_timers import SharedTimers
from holdfast.app import storage as app_storage
from holdfast.app import tune_gc
from holdfast.config import Config
from holdfast.core.events import TextDelta, entry
from holdfast.core.ids import RunId
from holdfast.core.parts import TextPart
from holdfast.engine.settings import EngineSettings
from holdfast.ports.journal import Append
from tests.servers import PostgresServer, RedisServer

RUNS = 100
SECONDS = 2.0
SCENARIO = EngineScenario("100 runs x 20/s, spread", RUNS, 80, 20.0, spread=True)


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The measurements of one node."""

    events_per_second: float = 0.0
    commit_p50_ms: float = 0.0
    cpu_us_per_token: float = 0.0
    late: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageResult:
    storage: str
    nodes: int
    events_per_second: float
    commit_p50_ms: float
    cpu_us_per_token: float
    late_p50_ms: float
    late_p99_ms: float


# ---- in a node ----


async def append(config: Config) -> NodeResult:
    node = await app_storage.open_node(config, {}, EngineSettings())
    runs = [RunId(f"bench_{os.getpid()}_{n}") for n in range(RUNS)]
    took: list[float] = []
    await _wait_for_start()
    began, seq = perf_counter(), 0
    while perf_counter() - began < SECONDS:
        seq += 1
        at = perf_counter()
        await node.journal.append([Append(run, 1, [entry(seq, TextDelta(f"word{seq} "))]) for run in runs])
        took.append(perf_counter() - at)
    rate = seq * RUNS / (perf_counter() - began)
    await node.close()
    return NodeResult(events_per_second=rate, commit_p50_ms=statistics.median(took) * 1000)


async def stream(config: Config) -> NodeResult:
    agent, progress = PacedAgent(SCENARIO, SharedTimers()), SubscriberProgress(RUNS)
    tune_gc()
    node = await app_storage.open_node(config, {"chat": agent}, EngineSettings())
    async with anyio.create_task_group() as tasks:
        await tasks.start(node.engine.run)
        engine = node.engine
        watching = []
        for number in range(RUNS):
            session = await engine.sessions.create()
            rid = (await engine.runs.submit(session.id, [TextPart("go")], settings=number)).run.id
            watching.append(Subscriber(engine, SCENARIO, number, rid, progress))
        async with anyio.create_task_group() as subscribers:
            for subscriber in watching:
                subscribers.start_soon(subscriber.follow)
            await progress.all_there.wait()
            await _wait_for_start()
            start, cpu = perf_counter(), cpu_seconds()
            for subscriber in watching:
                subscriber.started = start + offset(SCENARIO, subscriber.number)
            agent.go.set()
            await progress.all_done.wait()
            cpu = cpu_seconds() - cpu
            agent.finish.set()
        node.engine.stop()
    await node.close()
    late = tuple(round(1000 * each, 2) for subscriber in watching for each in subscriber.late)
    return NodeResult(cpu_us_per_token=cpu * 1e6 / (RUNS * SCENARIO.tokens), late=late)


async def _wait_for_start() -> None:
    os.write(1, b"ready\n")
    await anyio.wait_readable(0)
    os.read(0, 16)


# ---- in the bench ----


def run_nodes(kind: str, settings: dict[str, Any], nodes: int) -> list[NodeResult]:
    with ExitStack() as held:
        processes = []
        for _ in range(nodes):
            directory = held.enter_context(tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")))
            asked = json.dumps({"kind": kind, "data_dir": directory, **settings})
            command = [sys.executable, "-m", "bench.nodes", asked]
            processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate(timeout=300)[0] for process in processes]
    return [NodeResult(**json.loads(answer.splitlines()[-1])) for answer in answers]


def measure(storage: str, settings: Callable[[], dict[str, Any]], nodes: int) -> StorageResult:
    appended = run_nodes("append", settings(), nodes)
    streamed = run_nodes("stream", settings(), nodes)
    late = sorted(each for found in streamed for each in found.late)
    return StorageResult(
        storage,
        nodes,
        sum(found.events_per_second for found in appended),
        statistics.median(found.commit_p50_ms for found in appended),
        statistics.mean(found.cpu_us_per_token for found in streamed),
        late[len(late) // 2],
        late[int(len(late) * 0.99)],
    )


def measure_all(report: Callable[[str], None] = lambda _: None, most: int = 3) -> Sequence[StorageResult]:
    """Measure with fully durable servers; those that are not installed are left out."""
    found = []
    report("SQLite")
    found.append(measure("SQLite", dict, 1))
    try:
        postgres = PostgresServer(durable=True).start()
    except pytest.skip.Exception as missing:
        report(str(missing))
        return found
    try:
        numbers = iter(range(1000))

        def fresh() -> dict[str, Any]:
            return {"store_url": postgres.database(f"bench_{next(numbers)}")}

        for nodes in range(1, most + 1):
            report(f"PostgreSQL, {nodes} nodes")
            found.append(measure("PostgreSQL", fresh, nodes))
        found += _measure_redis(fresh, report, most)
    finally:
        postgres.close()
    return found


def _measure_redis(
    fresh: Callable[[], dict[str, Any]], report: Callable[[str], None], most: int
) -> list[StorageResult]:
    try:
        redis = RedisServer().start()
    except pytest.skip.Exception as missing:
        report(str(missing))
        return []
    found = []
    try:
        for nodes in range(1, most + 1):
            report(f"Redis, {nodes} nodes")
            found.append(measure("Redis (always)", lambda: {**fresh(), "journal_url": redis.url}, nodes))
    finally:
        redis.close()
    return found


def main() -> None:
    asked = json.loads(sys.argv[1])
    work = {"append": append, "stream": stream}[asked.pop("kind")]
    config = Config(data_dir=Path(asked.pop("data_dir")), **asked)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    found = uvloop.run(work(config))
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
