"""`make bench`: one run, one machine, one table. Ratios within a run are what counts: machines differ."""

import argparse
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import large, memory, models, nodes, openai, plots, report, room, runs, storage, streams, tokens
from bench.child import Child, Trouble, directory, raise_limits
from bench.figures import Figure, Missing
from bench.targets import STREAMING

ROOT = Path(__file__).parent.parent

Given = Figure | Missing | tokens.Sample | streams.Result | models.Result | str
"""A text says what is being done."""


@dataclass
class Bench:
    """What is wanted, and what came of it."""

    quick: bool
    rounds: int
    servers: Sequence[str]
    sessions: int
    scenarios: Sequence[tokens.Scenario]
    upstream: Child
    load: Child
    samples: list[tokens.Sample] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    inside: list[streams.Result] = field(default_factory=list)
    reading: list[models.Result] = field(default_factory=list)

    def take(self, given: Given) -> None:
        match given:
            case tokens.Sample():
                self.samples.append(given)
            case Figure():
                self.figures.append(given)
            case Missing():
                self.missing.append(given)
            case streams.Result():
                self.inside.append(given)
            case models.Result():
                self.reading.append(given)
            case str():
                pass

    # ---- parts: each gives the number of its steps first ----

    def tokens(self) -> Iterator[Given | int]:
        yield tokens.steps(self.scenarios, self.servers, self.rounds) + len(self.servers)
        yield from tokens.run(self.scenarios, self.servers, self.rounds, self.upstream, self.load)

    def first(self) -> Iterator[Given | int]:
        yield len(self.servers)
        yield from runs.first_token(self.servers, 20 if self.quick else 100, self.upstream, self.load)

    def resume(self) -> Iterator[Given | int]:
        yield 4
        yield from runs.resuming(10_000, 5 if self.quick else 30, self.upstream, self.load)

    def cancel(self) -> Iterator[Given | int]:
        yield 2
        yield from runs.cancelling(100, self.upstream, self.load)

    def kill(self) -> Iterator[Given | int]:
        yield 1
        yield from runs.killing(100 if self.quick else 1000, self.upstream, self.load)

    def memory(self) -> Iterator[Given | int]:
        yield 2
        yield from room.idle(500 if self.quick else 5000, self.upstream, self.load)
        yield from room.growth(100, 20 if self.quick else 100, self.upstream, self.load)

    def large(self) -> Iterator[Given | int]:
        yield 7
        count = min(self.sessions, 2000) if self.quick else self.sessions
        longest, unsettled = 10_000, min(1000, count // 10)
        with tempfile.TemporaryDirectory(dir=directory(), prefix="holdfast-bench-") as own:
            data = Path(own) / "data"
            yield f"making {count:,} sessions"
            opened = storage.in_process(data, count, unsettled, longest)
            yield Figure(
                "large", f"opening, {unsettled:,} unfinished runs settled, in process", opened.open_ms, target=1000
            )
            yield from large.serving(data, count, longest, 10 if self.quick else 50, self.upstream, self.load)
            commit, sync = storage.raw_commits(Path(own))
        yield Figure("disk", "raw SQLite commit of one row, FULL", commit, "µs", server="SQLite")
        yield Figure("disk", "raw append with fdatasync", sync, "µs", server="the disk")

    def agent(self) -> Iterator[Given | int]:
        chosen = list(streams.SCENARIOS)
        if self.quick:
            chosen = [replace(s, tokens=max(20, s.tokens // 5)) for s in chosen if s.runs <= 100]
        yield self.rounds * len(chosen)
        taken: dict[str, list[streams.Result]] = {}
        for _ in range(self.rounds):
            for scenario in chosen:
                yield f"inside: {scenario.name}"
                taken.setdefault(scenario.name, []).append(streams.in_process(scenario))
        for results in taken.values():
            yield streams.middle(results)

    def client(self) -> Iterator[Given | int]:
        yield self.rounds * len(models.SCENARIOS) * len(models.CLIENTS)
        for _ in range(self.rounds):
            for scenario in models.SCENARIOS:
                for client in models.CLIENTS:
                    yield f"{client}: {scenario.name}"
                    yield models.in_process(scenario, client)

    def faces(self) -> Iterator[Given | int]:
        yield self.rounds
        costs: dict[openai.Wire, list[float]] = {}
        for _ in range(self.rounds):
            yield "wire formats"
            for wire in openai.WIRES:
                took = openai.in_process(wire, 20_000 if self.quick else 100_000)
                costs.setdefault(wire, []).append(took.cpu_us_per_token)
        native = median(costs["native"])
        yield Figure("faces", "from durable to the socket, native stream, a token", native, "µs")
        for wire in ("responses", "chat"):
            added = median(costs[wire]) - native
            yield Figure("faces", f"added by /v1 ({wire}), a token", added, "µs", target=openai.TARGET)

    def recall(self) -> Iterator[Given | int]:
        yield 1
        count = 5000 if self.quick else 100_000
        yield f"{count:,} facts"
        found = memory.in_process(count)
        yield Figure("recall", f"recall among {count:,} facts, p50", found.p50_ms, target=50)
        yield Figure("recall", f"recall among {count:,} facts, p99", found.p99_ms, target=50)
        yield Figure("recall", "recall right after a fact was written", found.after_write_ms)
        yield Figure("recall", "first recall of a process", found.first_ms)

    def nodes(self) -> Iterator[Given | int]:
        yield 1
        yield "SQLite, PostgreSQL and Redis"
        for line in nodes.lines(most=1 if self.quick else 3):
            where = f"{line.nodes} nodes" if line.nodes > 1 else "1 node"
            yield Figure("nodes", f"{where}: appended", line.events_per_second, "events/s", server=line.storage)
            yield Figure("nodes", f"{where}: a commit of 100 events, p50", line.commit_p50_ms, server=line.storage)
            yield Figure(
                "nodes", f"{where}: CPU a token at 20/s, spread", line.cpu_us_per_token, "µs", server=line.storage
            )
            yield Figure("nodes", f"{where}: late, p50", line.late_p50_ms, server=line.storage)
            yield Figure("nodes", f"{where}: late, p99", line.late_p99_ms, server=line.storage)


PARTS: dict[str, Callable[[Bench], Iterator[Given | int]]] = {
    "tokens": Bench.tokens,
    "first": Bench.first,
    "resume": Bench.resume,
    "cancel": Bench.cancel,
    "kill": Bench.kill,
    "memory": Bench.memory,
    "large": Bench.large,
    "agent": Bench.agent,
    "client": Bench.client,
    "faces": Bench.faces,
    "recall": Bench.recall,
    "nodes": Bench.nodes,
}
QUICK = ("tokens", "first", "resume", "cancel", "kill")


def measure(bench: Bench, parts: Sequence[str], console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        tasks = {name: progress.add_task(name, total=None, start=False) for name in parts}
        for name in parts:
            task = tasks[name]
            progress.start_task(task)
            try:
                for given in PARTS[name](bench):
                    if isinstance(given, int):
                        progress.update(task, total=given)
                        continue
                    if isinstance(given, str):
                        progress.update(task, description=f"{name}: {given}")
                        if not console.is_terminal:
                            console.print(f"{name}: {given}", style="dim")
                        progress.advance(task)
                    bench.take(given)
            except Trouble as trouble:  # what went wrong with one part is said in its place; the others go on
                bench.missing.append(Missing(name, name, str(trouble)))
            progress.update(task, description=name)


def machine() -> dict[str, Any]:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=ROOT, check=False)
        return done.stdout.strip()

    model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "commit": git("rev-parse", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no", "--", "src", "bench")),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "cpu": model[0].partition(":")[2].strip() if model else "",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg(),
    }


def keep(bench: Bench, about: dict[str, Any], where: Path) -> list[Path]:
    where.mkdir(parents=True, exist_ok=True)
    figures = {
        "machine": about,
        "tokens": [asdict(s) for s in bench.samples],
        "figures": [asdict(f) for f in [*report.promises(bench.samples), *bench.figures]],
        "not_shown": [asdict(m) for m in bench.missing],
        "agent": [asdict(r) for r in bench.inside],
        "client": [asdict(r) for r in bench.reading],
    }
    path = where / "results.json"
    path.write_text(json.dumps(figures, indent=1) + "\n")
    return [path, *plots.draw(bench.samples, where)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute, to see that it works")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="this part alone; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved repetitions; medians are shown")
    parser.add_argument("--sessions", type=int, default=100_000, help="of the large directory")
    parser.add_argument("--server", action="append", choices=list(STREAMING), help="only these servers")
    parser.add_argument("--scenario", action="append", help="of the tokens: those whose name begins so")
    parser.add_argument("--results", type=Path, help="where the figures go; bench/results after a whole run")
    chosen = parser.parse_args()
    console = Console(width=max(Console().width, 170))
    parts = chosen.only or (list(QUICK) if chosen.quick else list(PARTS))
    whole = not (chosen.quick or chosen.only or chosen.server or chosen.scenario)
    scenarios = tokens.QUICK if chosen.quick else tokens.SCENARIOS
    if chosen.scenario:
        scenarios = tuple(s for s in scenarios if s.name.startswith(tuple(chosen.scenario)))
    servers = chosen.server or (list(tokens.OURS) if chosen.quick else list(STREAMING))
    about = machine()
    raise_limits()
    with Child("bench.upstream") as upstream, Child("bench.load") as load:
        rounds = 1 if chosen.quick else chosen.rounds
        bench = Bench(chosen.quick, rounds, servers, chosen.sessions, scenarios, upstream, load)
        measure(bench, parts, console)
    changed = " with changes" if about["changed"] else ""
    load_before = about["load"][0]
    console.print(f"{about['system']}, {about['cpu']}, {about['cores']} cores, Python {about['python']}")
    console.print(f"commit {about['commit'][:12]}{changed}, {about['at']}, load before: {load_before:.1f}")
    report.show(console, bench.samples, bench.figures, bench.missing, bench.inside, bench.reading)
    if load_before > 1.0:
        console.print("The machine was busy before this began: trust the ratios, and those little.", style="yellow")
    where = chosen.results or (ROOT / "bench" / "results" if whole else ROOT / "build" / "bench")
    for path in keep(bench, about, where):
        console.print(f"kept: {path}", style="dim")


if __name__ == "__main__":
    main()
