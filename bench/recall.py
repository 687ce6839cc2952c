"""Measures how long the built-in memory provider takes to recall among many facts on SQLite."""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio

from holdfast.core.ids import LOCAL, FactId, MessageId, SessionId
from holdfast.engine.fact_store import MemoryFacts
from holdfast.memory import holographic_vectors
from holdfast.memory.builtin_provider import Ask, NotesProvider
from holdfast.ports.store import Fact, Tx
from holdfast.storage.sqlite import open_embedded
from holdfast.system import RandomIds, SystemClock

NAMES = (
    "Anna",
    "Bela",
    "Clara",
    "Dario",
    "Edda",
    "Fynn",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kaya",
    "Leo",
    "Mila",
    "Nils",
)
THINGS = (
    "boat", "garden", "piano", "bicycle", "kettle", "lamp", "window", "notebook", "camera", "violin", "tent", "ladder",
    "cellar", "bridge", "harbour", "bakery", "library", "market", "river", "mountain",
)  # fmt: skip
VERBS = ("bought", "painted", "repaired", "sold", "borrowed", "found", "lost", "built", "visited", "described")
QUESTIONS = (
    "Where do I live?",
    "What did Anna do with the violin?",
    "Who repaired the bicycle in spring?",
    "Tell me about the harbor and the bakeries",
    "Is there anything I should know about the dinner tonight, with peanuts?",
    "What is my name, and what was the thing with the zeppelin?",
    "Explain quantum chromodynamics to me, please",
)


@dataclass(frozen=True, slots=True)
class RecallResult:
    facts: int
    first_ms: float
    """The first recall of a process, which reads all vectors."""
    p50_ms: float
    p99_ms: float
    after_write_ms: float
    """A recall directly after a fact was written."""
    megabytes: float


def fact(n: int, rng: random.Random) -> Fact:
    text = f"{rng.choice(NAMES)} {rng.choice(VERBS)} the {rng.choice(THINGS)} number {n} near the {rng.choice(THINGS)}."
    vector = (
        holographic_vectors.encode(text) if n % 50 == 0 else rng.randbytes(holographic_vectors.BYTES)
    )  # real vectors for all would take a minute
    source = (SessionId(f"ses_{n // 10}"), MessageId(f"msg_{n}"), float(n), float(n), float(n))
    return Fact(FactId(f"fct_{n}"), LOCAL, f"thing {n}", text, *source, vector=vector)


async def no_model(_: str | None) -> Ask | None:
    return None


async def measure(path: Path, count: int, rounds: int) -> RecallResult:
    rng = random.Random(7)
    directory, store, journal = open_embedded(path, SystemClock())
    try:
        for start in range(0, count, 5000):
            some = [fact(n, rng) for n in range(start, min(start + 5000, count))]

            def write(tx: Tx, some: list[Fact] = some) -> None:
                for each in some:
                    tx.put_fact(each)

            await store.transact(write)
        facts = MemoryFacts(store, RandomIds())
        provider = NotesProvider(facts, no_model)
        began = perf_counter()
        await provider.find(LOCAL, QUESTIONS[0])
        first = perf_counter() - began
        taken, after = [], []
        for _ in range(rounds):
            for question in QUESTIONS:
                began = perf_counter()
                await provider.find(LOCAL, question)
                taken.append(perf_counter() - began)
            await facts.change(FactId("fct_3"), text=f"Anna tuned the violin {rng.random()}.")
            began = perf_counter()
            await provider.find(LOCAL, QUESTIONS[1])
            after.append(perf_counter() - began)
        taken.sort()
        late = taken[int(len(taken) * 0.99) - 1]
        return RecallResult(count, first * 1e3, median(taken) * 1e3, late * 1e3, median(after) * 1e3, 0.0)
    finally:
        await journal.close()
        await store.close()
        directory.close()


def in_process(count: int, rounds: int = 20) -> RecallResult:
    """Measure in a new process, so that no cache is warm."""
    command = [sys.executable, "-m", "bench.recall", "--facts", str(count), "--rounds", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return RecallResult(**json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.recall", description=__doc__)
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        result = anyio.run(measure, Path(directory) / "data", arguments.facts, arguments.rounds)
        size = sum(file.stat().st_size for file in (Path(directory) / "data").glob("holdfast.db*")) / 1e6
    print(json.dumps(asdict(replace(result, megabytes=size))))


if __name__ == "__main__":
    main()
