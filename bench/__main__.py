"""`make bench`: measures Holdfast beside other servers in one run, and prints a table.

Compare ratios within a run; absolute figures depend on the machine.
"""

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

from bench import (
    engine_streams,
    large_directory_engine,
    large_directory_http,
    latency,
    memory_and_disk,
    model_client,
    nodes,
    plots,
    recall,
    report,
    token_cost,
    whole_turns,
    wire_formats,
)
from bench.figures import Figure, MissingFigure
from bench.servers import STREAMING
from bench.worker_process import BenchError, WorkerProcess, bench_directory, raise_limits

ROOT = Path(__file__).parent.parent

Step = (
    Figure
    | MissingFigure
    | whole_turns.TurnSample
    | token_cost.Sample
    | engine_streams.EngineResult
    | model_client.ClientResult
    | str
)
"""What a part yields; a string describes the next step."""


@dataclass
class Bench:
    """The chosen parts and scenarios, and the results so far."""

    quick: bool
    rounds: int
    servers: Sequence[str]
    sessions: int
    scenarios: Sequence[token_cost.Scenario]
    upstream: WorkerProcess
    load: WorkerProcess
    turns_taken: list[whole_turns.TurnSample] = field(default_factory=list)
    samples: list[token_cost.Sample] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    missing: list[MissingFigure] = field(default_factory=list)
    inside: list[engine_streams.EngineResult] = field(default_factory=list)
    reading: list[model_client.ClientResult] = field(default_factory=list)

    def add(self, step: Step) -> None:
        match step:
            case whole_turns.TurnSample():
                self.turns_taken.append(step)
            case token_cost.Sample():
                self.samples.append(step)
            case Figure():
                self.figures.append(step)
            case MissingFigure():
                self.missing.append(step)
            case engine_streams.EngineResult():
                self.inside.append(step)
            case model_client.ClientResult():
                self.reading.append(step)
            case str():
                pass

    # ---- parts: each yields the number of its steps first ----

    def turns(self) -> Iterator[Step | int]:
        scenarios = whole_turns.QUICK if self.quick else whole_turns.SCENARIOS
        yield whole_turns.steps(scenarios, self.servers, self.rounds) + 2 * len(self.servers)
        yield from whole_turns.run(scenarios, self.servers, self.rounds, self.upstream, self.load)
        yield from whole_turns.saturate(self.servers, 50, 300 if self.quick else 3000, self.upstream, self.load)

    def tokens(self) -> Iterator[Step | int]:
        yield token_cost.steps(self.scenarios, self.servers, self.rounds) + len(self.servers)
        yield from token_cost.run(self.scenarios, self.servers, self.rounds, self.upstream, self.load)

    def first(self) -> Iterator[Step | int]:
        yield len(self.servers)
        yield from latency.measure_first_token(self.servers, 20 if self.quick else 100, self.upstream, self.load)

    def resume(self) -> Iterator[Step | int]:
        yield 4
        yield from latency.measure_resume(10_000, 5 if self.quick else 30, self.upstream, self.load)

    def cancel(self) -> Iterator[Step | int]:
        yield 2
        yield from latency.measure_cancel(100, self.upstream, self.load)

    def kill(self) -> Iterator[Step | int]:
        yield 1
        yield from latency.measure_kill(100 if self.quick else 1000, self.upstream, self.load)

    def memory(self) -> Iterator[Step | int]:
        yield 2
        yield from memory_and_disk.measure_idle_streams(500 if self.quick else 5000, self.upstream, self.load)
        yield from memory_and_disk.measure_disk_growth(100, 20 if self.quick else 100, self.upstream, self.load)

    def large(self) -> Iterator[Step | int]:
        yield 7
        count = min(self.sessions, 2000) if self.quick else self.sessions
        longest, unsettled = 10_000, min(1000, count // 10)
        with tempfile.TemporaryDirectory(dir=bench_directory(), prefix="holdfast-bench-") as own:
            data = Path(own) / "data"
            yield f"making {count:,} sessions"
            opened = large_directory_engine.in_process(data, count, unsettled, longest)
            yield Figure(
                "large", f"opening, {unsettled:,} unfinished runs settled, in process", opened.open_ms, target=1000
            )
            yield from large_directory_http.measure_server(
                data, count, longest, 10 if self.quick else 50, self.upstream, self.load
            )
            commit, sync = large_directory_engine.raw_commits(Path(own))
        yield Figure("disk", "raw SQLite commit of one row, FULL", commit, "µs", server="SQLite")
        yield Figure("disk", "raw append with fdatasync", sync, "µs", server="the disk")

    def agent(self) -> Iterator[Step | int]:
        chosen = list(engine_streams.SCENARIOS)
        if self.quick:
            chosen = [replace(s, tokens=max(20, s.tokens // 5)) for s in chosen if s.runs <= 100]
        yield self.rounds * len(chosen)
        taken: dict[str, list[engine_streams.EngineResult]] = {}
        for _ in range(self.rounds):
            for scenario in chosen:
                yield f"inside: {scenario.name}"
                taken.setdefault(scenario.name, []).append(engine_streams.in_process(scenario))
        for results in taken.values():
            yield engine_streams.middle(results)

    def client(self) -> Iterator[Step | int]:
        yield self.rounds * len(model_client.SCENARIOS) * len(model_client.CLIENTS)
        for _ in range(self.rounds):
            for scenario in model_client.SCENARIOS:
                for client in model_client.CLIENTS:
                    yield f"{client}: {scenario.name}"
                    yield model_client.in_process(scenario, client)

    def api(self) -> Iterator[Step | int]:
        yield self.rounds
        costs: dict[wire_formats.Wire, list[float]] = {}
        for _ in range(self.rounds):
            yield "wire formats"
            for wire in wire_formats.WIRES:
                took = wire_formats.in_process(wire, 20_000 if self.quick else 100_000)
                costs.setdefault(wire, []).append(took.cpu_us_per_token)
        native = median(costs["native"])
        yield Figure("api", "from commit to socket, native stream, per token", native, "µs")
        for wire in ("responses", "chat"):
            added = median(costs[wire]) - native
            yield Figure("api", f"added by /v1 ({wire}), per token", added, "µs", target=wire_formats.TARGET)

    def recall(self) -> Iterator[Step | int]:
        yield 1
        count = 5000 if self.quick else 100_000
        yield f"{count:,} facts"
        found = recall.in_process(count)
        yield Figure("recall", f"recall among {count:,} facts, p50", found.p50_ms, target=50)
        yield Figure("recall", f"recall among {count:,} facts, p99", found.p99_ms, target=50)
        yield Figure("recall", "recall right after a fact was written", found.after_write_ms)
        yield Figure("recall", "first recall of a process", found.first_ms)

    def nodes(self) -> Iterator[Step | int]:
        yield 1
        yield "SQLite, PostgreSQL and Redis"
        for line in nodes.measure_all(most=1 if self.quick else 3):
            where = f"{line.nodes} nodes" if line.nodes > 1 else "1 node"
            yield Figure("nodes", f"{where}: appended", line.events_per_second, "events/s", server=line.storage)
            yield Figure("nodes", f"{where}: a commit of 100 events, p50", line.commit_p50_ms, server=line.storage)
            yield Figure(
                "nodes", f"{where}: CPU a token at 20/s, spread", line.cpu_us_per_token, "µs", server=line.storage
            )
            yield Figure("nodes", f"{where}: late, p50", line.late_p50_ms, server=line.storage)
            yield Figure("nodes", f"{where}: late, p99", line.late_p99_ms, server=line.storage)


PARTS: dict[str, Callable[[Bench], Iterator[Step | int]]] = {
    "turns": Bench.turns,
    "tokens": Bench.tokens,
    "first": Bench.first,
    "resume": Bench.resume,
    "cancel": Bench.cancel,
    "kill": Bench.kill,
    "memory": Bench.memory,
    "large": Bench.large,
    "agent": Bench.agent,
    "client": Bench.client,
    "api": Bench.api,
    "recall": Bench.recall,
    "nodes": Bench.nodes,
}
QUICK = ("turns", "tokens", "first", "resume", "cancel", "kill")


def measure(bench: Bench, parts: Sequence[str], console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        tasks = {name: progress.add_task(name, total=None, start=False) for name in parts}
        for name in parts:
            task = tasks[name]
            progress.start_task(task)
            try:
                for step in PARTS[name](bench):
                    if isinstance(step, int):
                        progress.update(task, total=step)
                        continue
                    if isinstance(step, str):
                        progress.update(task, description=f"{name}: {step}")
                        if not console.is_terminal:
                            console.print(f"{name}: {step}", style="dim")
                        progress.advance(task)
                    bench.add(step)
            except BenchError as error:  # reported in the table; the other parts continue
                bench.missing.append(MissingFigure(name, name, str(error)))
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


def save(bench: Bench, about: dict[str, Any], where: Path, plots_directory: Path) -> list[Path]:
    where.mkdir(parents=True, exist_ok=True)
    figures = {
        "machine": about,
        "turns": [asdict(s) for s in bench.turns_taken],
        "tokens": [asdict(s) for s in bench.samples],
        "figures": [
            asdict(f)
            for f in [
                *whole_turns.first_token_added(bench.turns_taken),
                *report.compared_targets(bench.samples),
                *bench.figures,
            ]
        ],
        "not_measured": [asdict(m) for m in bench.missing],
        "agent": [asdict(r) for r in bench.inside],
        "client": [asdict(r) for r in bench.reading],
    }
    path = where / "results.json"
    path.write_text(json.dumps(figures, indent=1) + "\n")
    return [path, *plots.draw(bench.samples, plots_directory)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short run of about a minute, to see that it works")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="run only this part; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds; medians are shown")
    parser.add_argument("--sessions", type=int, default=100_000, help="sessions in the large directory")
    parser.add_argument(
        "--server", action="append", choices=list(STREAMING), help="measure only this server; may be repeated"
    )
    parser.add_argument("--scenario", action="append", help="token scenarios whose name starts with this")
    parser.add_argument("--results", type=Path, help="directory for the results; bench/results after a complete run")
    chosen = parser.parse_args()
    console = Console(width=max(Console().width, 170))
    parts = chosen.only or (list(QUICK) if chosen.quick else list(PARTS))
    whole = not (chosen.quick or chosen.only or chosen.server or chosen.scenario)
    scenarios = token_cost.QUICK if chosen.quick else token_cost.SCENARIOS
    if chosen.scenario:
        scenarios = tuple(s for s in scenarios if s.name.startswith(tuple(chosen.scenario)))
    servers = chosen.server or (list(token_cost.OURS) if chosen.quick else list(STREAMING))
    about = machine()
    raise_limits()
    with WorkerProcess("bench.upstream") as upstream, WorkerProcess("bench.load_client") as load:
        rounds = 1 if chosen.quick else chosen.rounds
        bench = Bench(chosen.quick, rounds, servers, chosen.sessions, scenarios, upstream, load)
        measure(bench, parts, console)
    changed = " with changes" if about["changed"] else ""
    load_before = about["load"][0]
    console.print(f"{about['system']}, {about['cpu']}, {about['cores']} cores, Python {about['python']}")
    console.print(f"commit {about['commit'][:12]}{changed}, {about['at']}, load before: {load_before:.1f}")
    report.show(console, bench.turns_taken, bench.samples, bench.figures, bench.missing, bench.inside, bench.reading)
    if load_before > 1.0:
        console.print("The machine was busy before the run: the figures are unreliable.", style="yellow")
    where = chosen.results or (ROOT / "bench" / "results" if whole else ROOT / "build" / "bench")
    plots_directory = where if chosen.results or not whole else ROOT / "docs" / "pictures"
    for path in save(bench, about, where, plots_directory):
        console.print(f"saved: {path}", style="dim")


if __name__ == "__main__":
    main()
