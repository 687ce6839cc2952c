"""Storage side by side: SQLite, PostgreSQL, Redis; one node, and several that share. Each node is a process.

`append`    commits of one event each of 100 runs, as fast as the journal takes them: events a second.
`stream`    100 runs a node, 20 tokens a second each, from the agent to a subscriber in some node: how late a token is.

A child says that it is ready, is told to begin, and prints what it found: all begin at the same moment.
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

from bench.streams import FINISH, GO, Audience, Scenario, Subscriber, cpu_seconds, offset, script
from holdfast.agents.scripted import AgentTable, ScriptedAgent
from holdfast.config import Config
from holdfast.core.events import TextDelta, entry
from holdfast.core.ids import RunId
from holdfast.core.parts import Text
from holdfast.engine.settings import Settings
from holdfast.ports import Append
from holdfast.wiring import keeping, tune_gc
from tests.servers import PostgresServer, RedisServer

RUNS = 100
SECONDS = 2.0
SCENARIO = Scenario("100 runs x 20/s, spread", RUNS, 80, 20.0, spread=True)


@dataclass(frozen=True, slots=True)
class Found:
    """Of one node."""

    events_per_second: float = 0.0
    commit_p50_ms: float = 0.0
    cpu_us_per_token: float = 0.0
    late: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    storage: str
    nodes: int
    events_per_second: float
    commit_p50_ms: float
    cpu_us_per_token: float
    late_p50_ms: float
    late_p99_ms: float


# ---- a child ----


async def append(config: Config) -> Found:
    node = await keeping.open_node(config, AgentTable({}), Settings())
    runs = [RunId(f"bench_{os.getpid()}_{n}") for n in range(RUNS)]
    took: list[float] = []
    await _told_to_begin()
    began, seq = perf_counter(), 0
    while perf_counter() - began < SECONDS:
        seq += 1
        at = perf_counter()
        await node.journal.append([Append(run, 1, [entry(seq, TextDelta(f"word{seq} "))]) for run in runs])
        took.append(perf_counter() - at)
    rate = seq * RUNS / (perf_counter() - began)
    await node.close()
    return Found(events_per_second=rate, commit_p50_ms=statistics.median(took) * 1000)


async def stream(config: Config) -> Found:
    agent, audience = ScriptedAgent(script(SCENARIO)), Audience(RUNS)
    tune_gc()
    node = await keeping.open_node(config, AgentTable({"chat": agent}), Settings())
    async with anyio.create_task_group() as tasks:
        await tasks.start(node.engine.run)
        service = node.engine.service
        watching = []
        for number in range(RUNS):
            session = await service.create_session()
            rid = (await service.submit(session.id, [Text("go")], settings=number)).run.id
            watching.append(Subscriber(service, SCENARIO, number, rid, audience))
        async with anyio.create_task_group() as subscribers:
            for subscriber in watching:
                subscribers.start_soon(subscriber.follow)
            await audience.all_there.wait()
            await _told_to_begin()
            start, cpu = perf_counter(), cpu_seconds()
            for subscriber in watching:
                subscriber.started = start + offset(SCENARIO, subscriber.number)
            agent.gate(GO).open.set()
            await audience.all_done.wait()
            cpu = cpu_seconds() - cpu
            agent.gate(FINISH).open.set()
        node.engine.stop()
    await node.close()
    late = tuple(round(1000 * each, 2) for subscriber in watching for each in subscriber.late)
    return Found(cpu_us_per_token=cpu * 1e6 / (RUNS * SCENARIO.tokens), late=late)


async def _told_to_begin() -> None:
    os.write(1, b"ready\n")
    await anyio.wait_readable(0)
    os.read(0, 16)


# ---- the parent ----


def together(kind: str, settings: dict[str, Any], nodes: int) -> list[Found]:
    with ExitStack() as held:
        children = []
        for _ in range(nodes):
            directory = held.enter_context(tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")))
            asked = json.dumps({"kind": kind, "data_dir": directory, **settings})
            command = [sys.executable, "-m", "bench.nodes", asked]
            children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        answers = [child.communicate(timeout=300)[0] for child in children]
    return [Found(**json.loads(answer.splitlines()[-1])) for answer in answers]


def measure(storage: str, settings: Callable[[], dict[str, Any]], nodes: int) -> Line:
    appended = together("append", settings(), nodes)
    streamed = together("stream", settings(), nodes)
    late = sorted(each for found in streamed for each in found.late)
    return Line(
        storage,
        nodes,
        sum(found.events_per_second for found in appended),
        statistics.median(found.commit_p50_ms for found in appended),
        statistics.mean(found.cpu_us_per_token for found in streamed),
        late[len(late) // 2],
        late[int(len(late) * 0.99)],
    )


def lines(report: Callable[[str], None] = lambda _: None, most: int = 3) -> Sequence[Line]:
    """Servers with everything on that makes a commit durable; those that are not installed are left out."""
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
        found += _redis_lines(fresh, report, most)
    finally:
        postgres.remove()
    return found


def _redis_lines(fresh: Callable[[], dict[str, Any]], report: Callable[[str], None], most: int) -> list[Line]:
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
        redis.remove()
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
