"""Runs a batch of histories and collects the results."""

import gc
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.sim.history import run_history


@dataclass(slots=True)
class Chunk:
    done: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)
    """Seed and first finding."""
    situations: "Counter[str]" = field(default_factory=Counter)
    virtual: float = 0.0
    """Seconds that passed in them."""

    def add(self, other: "Chunk") -> None:
        self.done += other.done
        self.failures += other.failures
        self.situations.update(other.situations)
        self.virtual += other.virtual


def run_chunk(seeds: Iterable[int]) -> Chunk:
    """The work of one process. Garbage is collected once, not during histories."""
    chunk = Chunk()
    collects = gc.isenabled()
    gc.disable()
    try:
        for seed in seeds:
            outcome = run_history(seed)
            failures = [(seed, outcome.findings[0])] if outcome.findings else []
            chunk.add(Chunk(1, failures, outcome.situations, outcome.seconds))
    finally:
        if collects:
            gc.enable()
            gc.collect()
    return chunk
