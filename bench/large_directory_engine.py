"""Measures the engine on a large data directory: opening with unsettled runs, listing, searching."""

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio
import uvloop

from holdfast.agents.scripted_agent import ScriptedAgent
from holdfast.app import open_node, tune_gc
from holdfast.bench_data import seed as seed_sessions
from holdfast.bench_data.seed import COMMON, RARE, Plan, message_id, session_id
from holdfast.core.events import RunStarted, TextDelta, entry
from holdfast.core.ids import LOCAL, NodeId, RunId
from holdfast.core.lease import Lease
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.ports.journal import Append
from holdfast.ports.store import RunQuery, SessionQuery, Tx
from holdfast.storage.sqlite import open_embedded
from holdfast.system import SystemClock


@dataclass(frozen=True, slots=True)
class OpeningResult:
    sessions: int
    unsettled: int
    open_ms: float
    first_page_ms: float
    search_rare_ms: float
    search_common_ms: float
    last_page_ms: float
    megabytes: float


async def seed(directory: Path, plan: Plan, unsettled: int, events: int) -> None:
    """Fill the directory; the last `unsettled` sessions have a run whose process was killed."""
    data, store, journal = open_embedded(directory, SystemClock())
    await seed_sessions.seed(store, plan, SystemClock().now())
    gone = Lease(NodeId("node_gone"))
    numbers = range(plan.sessions - unsettled, plan.sessions)

    def leave_open(tx: Tx) -> None:
        for n in numbers:
            _open_run(tx, n, plan.messages, gone)

    await store.transact(leave_open)
    for n in numbers:
        question, answer = message_id(n, plan.messages - 1), message_id(n, plan.messages)
        started = RunStarted(_run(n), session_id(n), answer, question, None, "chat")
        entries = [entry(1, started), *(entry(k, TextDelta(f"word{k} ")) for k in range(2, events + 1))]
        await journal.append([Append(_run(n), 1, entries)])
    await journal.close()
    await store.close()
    data.close()


def _run(n: int) -> RunId:
    return RunId(f"run_{n:08}")


def _open_run(tx: Tx, n: int, messages: int, lease: Lease) -> None:
    session = tx.session(session_id(n))
    assert session is not None
    assert session.head is not None
    at = session.created_at
    answer = Message(message_id(n, messages), LOCAL, session.id, "assistant", session.head, at, _run(n), "streaming")
    tx.put_message(answer)
    tx.put_session(replace(session, head=answer.id))
    run = Run(_run(n), LOCAL, session.id, answer.id, session.head, "chat", None, None, "detached", at, n, True)
    tx.put_run(replace(run, status="running", epoch=1, lease=lease, started_at=at))


async def timed(work: Callable[[], Awaitable[object]], times: int = 9) -> float:
    took = []
    for _ in range(times):
        start = perf_counter()
        await work()
        took.append((perf_counter() - start) * 1000)
    return median(took)


async def measure(directory: Path, sessions: int, unsettled: int) -> OpeningResult:
    """Opening ends when the engine serves and every run of the earlier process is settled."""
    tune_gc()
    start = perf_counter()
    node = await open_node(directory, {"chat": ScriptedAgent([])})
    async with anyio.create_task_group() as tg:
        await tg.start(node.engine.run)
        opened = (perf_counter() - start) * 1000
        engine = node.engine
        left = await engine.runs.list(RunQuery(LOCAL, status=["running", "queued"], limit=1))
        assert not left, left
        result = OpeningResult(
            sessions,
            unsettled,
            opened,
            await timed(lambda: engine.sessions.list(SessionQuery(LOCAL))),
            await timed(lambda: engine.sessions.search(RARE)),
            await timed(lambda: engine.sessions.search(COMMON)),
            await timed(lambda: engine.messages.page(session_id(sessions))),
            _megabytes(directory),
        )
        node.engine.stop()
    await node.close()
    return result


def _megabytes(directory: Path) -> float:
    return sum(file.stat().st_size for file in directory.iterdir()) / 1e6


def in_process(directory: Path, sessions: int, unsettled: int, longest: int, times: int = 5) -> OpeningResult:
    """Fill `directory` and measure it. Opening is the median of several, each in a process of its own, all but the last
    on a copy."""
    of_this_size = [str(sessions), str(unsettled), str(longest)]
    _run_process("seed", directory, of_this_size)
    opened = []
    for _ in range(times - 1):
        with tempfile.TemporaryDirectory(dir=directory.parent) as own:
            copy = shutil.copytree(directory, Path(own) / "data")
            opened.append(_measured(copy, of_this_size).open_ms)
    last = _measured(directory, of_this_size)
    return replace(last, open_ms=median([*opened, last.open_ms]))


def _measured(directory: Path, of_this_size: Sequence[str]) -> OpeningResult:
    return OpeningResult(**json.loads(_run_process("measure", directory, of_this_size).splitlines()[-1]))


def _run_process(what: str, directory: Path, of_this_size: Sequence[str]) -> str:
    command = [sys.executable, "-m", "bench.large_directory_engine", what, str(directory), *of_this_size]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def raw_commits(directory: Path, count: int = 2000) -> tuple[float, float]:
    """Baseline of the machine in µs: a one-row commit of SQLite with FULL, and a file append with fdatasync."""
    db = sqlite3.connect(directory / "raw.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE log (n INTEGER PRIMARY KEY, frame BLOB)")
    start = perf_counter()
    for _ in range(count):
        db.execute("INSERT INTO log (frame) VALUES (?)", (b"x" * 60,))
    commit = (perf_counter() - start) / count * 1e6
    db.close()
    fd = os.open(directory / "raw.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    start = perf_counter()
    for _ in range(count):
        os.write(fd, b"x" * 60)
        os.fdatasync(fd)
    sync = (perf_counter() - start) / count * 1e6
    os.close(fd)
    return commit, sync


def main() -> None:
    parser = argparse.ArgumentParser(description="Fill a data directory, or open and measure it and print JSON.")
    parser.add_argument("what", choices=["seed", "measure"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("sessions", type=int)
    parser.add_argument("unsettled", type=int)
    parser.add_argument("longest", type=int)
    chosen = parser.parse_args()
    if chosen.what == "seed":
        uvloop.run(seed(chosen.directory, Plan(chosen.sessions, 2, chosen.longest), chosen.unsettled, 100))
    else:
        result = uvloop.run(measure(chosen.directory, chosen.sessions, chosen.unsettled))
        sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
