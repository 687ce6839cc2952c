"""How long a large data directory takes: to open with runs left unfinished, to list, to search."""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio
import uvloop

from holdfast.agents.scripted import AgentTable, ScriptedAgent
from holdfast.core.events import RunStarted, TextDelta, entry
from holdfast.core.ids import LOCAL, MessageId, NodeId, RunId, SessionId
from holdfast.core.parts import Text
from holdfast.core.run import Lease, Run
from holdfast.core.session import Message, Session
from holdfast.ports import Append, SessionQuery, Tx
from holdfast.storage.sqlite import open_embedded
from holdfast.system import SystemClock
from holdfast.wiring import open_node, tune_gc

WORDS = [
    "anchor",
    "beacon",
    "canvas",
    "delta",
    "ember",
    "fathom",
    "gully",
    "harvest",
    "island",
    "jetty",
    "kelp",
    "lantern",
    "meadow",
    "needle",
    "orchard",
    "pebble",
    "quarry",
    "ribbon",
    "sail",
    "timber",
    "upland",
    "valley",
    "willow",
    "yonder",
    "zephyr",
    "rope",
    "knot",
    "tide",
    "ledger",
    "morning",
    "window",
    "paper",
    "kitchen",
    "garden",
]
COMMON = "tide"
RARE = "harbour"


@dataclass(frozen=True, slots=True)
class Result:
    sessions: int
    unsettled: int
    open_ms: float
    first_page_ms: float
    search_rare_ms: float
    search_common_ms: float
    last_page_ms: float
    megabytes: float


def words(random_: random.Random, count: int, number: int) -> str:
    chosen = random_.choices(WORDS, k=count)
    chosen[0] = COMMON
    if number % 1000 == 7:
        chosen[-1] = RARE
    return " ".join(chosen)


async def seed(directory: Path, sessions: int, messages: int, unsettled: int, events: int) -> None:
    """`sessions` of `messages` each; the last `unsettled` of them were running when their process went away."""
    random_ = random.Random(1)
    data, store, journal = open_embedded(directory, SystemClock())
    gone = Lease(NodeId("node_gone"))

    def some(first: int, last: int) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            for n in range(first, last):
                _one(tx, random_, n, messages, n >= sessions - unsettled, gone)

        return work

    for first in range(0, sessions, 2000):
        await store.transact(some(first, min(first + 2000, sessions)))
    for n in range(sessions - unsettled, sessions):
        started = RunStarted(_run(n), _sid(n), _mid(n, messages), _mid(n, messages - 1), None, "chat")
        entries = [entry(1, started), *(entry(k, TextDelta(f"word{k} ")) for k in range(2, events + 1))]
        await journal.append([Append(_run(n), 1, entries)])
    await journal.close()
    await store.close()
    data.close()


def _sid(n: int) -> SessionId:
    return SessionId(f"ses_{n:08}")


def _run(n: int) -> RunId:
    return RunId(f"run_{n:08}")


def _mid(n: int, k: int) -> MessageId:
    return MessageId(f"msg_{n:08}_{k:06}")


def _one(tx: Tx, random_: random.Random, n: int, messages: int, is_open: bool, lease: Lease) -> None:
    at = 1_700_000_000.0 + n
    head = _mid(n, messages - 1)
    session = Session(_sid(n), LOCAL, at, at, title=words(random_, 4, n), titled_by="model", head=head)
    tx.put_session(session)
    parent: MessageId | None = None
    for k in range(messages):
        mid = _mid(n, k)
        text = Text(words(random_, 30, n))
        role = "user" if k % 2 == 0 else "assistant"
        tx.put_message(Message(mid, LOCAL, session.id, role, parent, at, parts=(text,)))  # type: ignore[arg-type]
        parent = mid
    if is_open:
        assert parent is not None
        answer = Message(_mid(n, messages), LOCAL, session.id, "assistant", parent, at, _run(n), "streaming")
        tx.put_message(answer)
        tx.put_session(replace(session, head=answer.id))
        run = Run(_run(n), LOCAL, session.id, answer.id, parent, "chat", None, None, "detached", at, n, True)
        tx.put_run(replace(run, status="running", epoch=1, lease=lease, started_at=at))


async def timed(work: Callable[[], Awaitable[object]], times: int = 9) -> float:
    took = []
    for _ in range(times):
        start = perf_counter()
        await work()
        took.append((perf_counter() - start) * 1000)
    return median(took)


async def measure(directory: Path, sessions: int, unsettled: int) -> Result:
    """Opening is from nothing to serving, every run of the earlier life settled."""
    tune_gc()
    start = perf_counter()
    node = await open_node(directory, AgentTable({"chat": ScriptedAgent([])}))
    async with anyio.create_task_group() as tg:
        await tg.start(node.engine.run)
        opened = (perf_counter() - start) * 1000
        service = node.engine.service
        left = await service.runs(status=["running", "queued"], limit=1)
        assert not left, left
        result = Result(
            sessions,
            unsettled,
            opened,
            await timed(lambda: service.sessions(SessionQuery(LOCAL))),
            await timed(lambda: service.search(RARE)),
            await timed(lambda: service.search(COMMON)),
            await timed(lambda: service.messages(_sid(0))),
            _megabytes(directory),
        )
        node.engine.stop()
    await node.close()
    return result


def _megabytes(directory: Path) -> float:
    return sum(file.stat().st_size for file in directory.iterdir()) / 1e6


def in_process(sessions: int, unsettled: int) -> Result:
    command = [sys.executable, "-m", "bench.storage", str(sessions), str(unsettled)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Result(**json.loads(done.stdout.splitlines()[-1]))


def raw_commits(directory: Path, count: int = 2000) -> tuple[float, float]:
    """What the machine gives: one-row commits of SQLite with FULL, and bare appends with fdatasync, µs each."""
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
    parser = argparse.ArgumentParser(description="Seed a data directory and measure it; prints JSON.")
    parser.add_argument("sessions", type=int)
    parser.add_argument("unsettled", type=int)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as name:
        directory = Path(name) / "data"
        uvloop.run(seed(directory, arguments.sessions, 2, arguments.unsettled, 100))
        result = uvloop.run(measure(directory, arguments.sessions, arguments.unsettled))
    sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
