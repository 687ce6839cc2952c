"""`python -m tests.sim`: many histories on all cores, or one with its trace."""

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import fields

from tests.sim.chunk import Chunk, run_chunk
from tests.sim.generate import generate
from tests.sim.history import run_history
from tests.sim.plan import Plan
from tests.sim.situations import EXPECTED

_CHUNK = 50
_SHOWN = 20
"""Failures that are told at once; of the others the seeds are listed at the end."""


def run_many(first: int, histories: int, minutes: float | None, jobs: int) -> int:
    began = time.monotonic()
    ends_at = None if minutes is None else began + minutes * 60
    total = Chunk()

    def chunks() -> Iterator[range]:
        for start in range(first, first + histories, _CHUNK):
            if ends_at is not None and time.monotonic() >= ends_at:
                return
            yield range(start, min(start + _CHUNK, first + histories))

    with multiprocessing.Pool(jobs) as pool:
        waiting = chunks()
        running = [pool.apply_async(run_chunk, (seeds,)) for _, seeds in zip(range(2 * jobs), waiting, strict=False)]
        while running:
            chunk = running.pop(0).get()
            more = next(waiting, None)
            if more is not None:
                running.append(pool.apply_async(run_chunk, (more,)))
            _report(chunk, len(total.failures))
            total.add(chunk)
            rate = total.done / max(time.monotonic() - began, 0.001)
            line = f"\r{total.done}/{histories} histories, {rate:.0f}/s, {len(total.failures)} failures "
            print(line, end="", file=sys.stderr, flush=True)
    _summary(total, first, time.monotonic() - began)
    return 1 if total.failures else 0


def _report(chunk: Chunk, before: int) -> None:
    for number, (seed, finding) in enumerate(chunk.failures, before):
        if number < _SHOWN:
            print(f"\nseed {seed} failed: {finding}\n  see it again: python -m tests.sim --only {seed}", flush=True)


def _summary(total: Chunk, first: int, seconds: float) -> None:
    print(file=sys.stderr)
    names = [*EXPECTED, *sorted(set(total.situations) - set(EXPECTED))]
    rows = [f"{total.situations[name]:>9}  {name}" for name in names]
    half = (len(rows) + 1) // 2
    for left, right in zip(rows[:half], [*rows[half:], ""], strict=False):
        print(f"{left:<44}{right}".rstrip())
    never = [name for name in EXPECTED if not total.situations[name]]
    if never:
        print(f"never happened: {', '.join(never)}")
    if total.failures:
        print(f"failed: {' '.join(str(seed) for seed, _ in total.failures[:1000])}")
    print(f"virtual time: {total.virtual / 3600:.0f} h")
    print(
        f"sim: {total.done} histories, seeds {first}..{first + total.done - 1}, "
        f"{len(total.failures)} failures, {seconds:.0f} s"
    )


def run_one(seed: int, whole: bool) -> int:
    """One history with its plan and trace: up to shortly after the first finding, or all of it."""
    _print_plan(generate(seed))
    outcome = run_history(seed, trace=True)
    trace = outcome.trace
    first = next((n for n, line in enumerate(trace) if "!!!" in line), None)
    end = len(trace) if whole or first is None else first + 10
    print(*trace[:end], sep="\n")
    if end < len(trace):
        print(f"… {len(trace) - end} more lines with --whole")
    for finding in outcome.findings[:10]:
        print(f"finding: {finding}")
    print(f"sim: seed {seed}, {len(outcome.findings)} findings, {outcome.seconds:.1f} s of virtual time")
    return 1 if outcome.findings else 0


def _print_plan(plan: Plan) -> None:
    print(f"seed {plan.seed}: {plan.mode}, {plan.nodes} nodes, {plan.sessions} sessions")
    print("settings:", ", ".join(f"{f.name}={getattr(plan.settings, f.name)}" for f in fields(plan.settings)))
    for name in ("scripts", "incarnations"):
        for number, item in enumerate(getattr(plan, name)):
            print(f"{name} {number}: {item}")
    print(f"wakes: {plan.wakes}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description="Run simulated histories with faults.")
    parser.add_argument("--histories", type=int, default=100_000)
    parser.add_argument("--seed", type=int, help="of the first history; the others follow (default: chance)")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, metavar="SEED", help="run this one and print its trace")
    parser.add_argument("--whole", action="store_true", help="with --only: do not stop the trace at the first finding")
    args = parser.parse_args()
    if args.only is not None:
        return run_one(args.only, args.whole)
    seed = random.SystemRandom().randrange(1, 2**40) if args.seed is None else args.seed
    return run_many(seed, args.histories, args.minutes, args.jobs)


if __name__ == "__main__":
    sys.exit(main())
