"""`make bench`: one run, one machine, one table. CPU is user and system time of the whole process, threads included."""

import argparse
import json
import os
import platform
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import memory, models, nodes, openai, storage, streams

TARGETS = {
    "100 runs, full speed": 8.0,
    "100 runs x 20/s, begun together": 30.0,
    "100 runs x 20/s, spread": 30.0,
    "1,000 runs x 20/s, begun together": 30.0,
    "1,000 runs x 20/s, spread": 30.0,
}


def medians(results: Sequence[streams.Result]) -> streams.Result:
    middle = statistics.median_low([r.cpu_us_per_token for r in results])
    return next(r for r in results if r.cpu_us_per_token == middle)


def stream_table(results: Sequence[streams.Result]) -> Table:
    table = Table(title="From agent to subscriber, each event durable (synchronous=FULL) before it is seen")
    for column in ("scenario", "CPU µs/token", "target", "events/token", "tokens/s", "events/commit"):
        table.add_column(column, justify="left" if column == "scenario" else "right")
    for column in ("late p50 ms", "late p99 ms", "ending, CPU ms/run", "peak MB"):
        table.add_column(column, justify="right")
    for r in results:
        target = TARGETS.get(r.scenario)
        late = ["-", "-"] if r.late_p50_ms != r.late_p50_ms else [f"{r.late_p50_ms:.1f}", f"{r.late_p99_ms:.1f}"]
        table.add_row(
            r.scenario,
            f"{r.cpu_us_per_token:.1f}",
            "" if target is None else f"≤ {target:.0f}",
            f"{r.events_per_token:.3f}",
            f"{r.tokens_per_second:,.0f}",
            f"{r.events_per_commit:.1f}",
            *late,
            f"{r.ending_ms_per_run:.2f}",
            f"{r.peak_mb:.0f}",
        )
    return table


def storage_table(r: storage.Result, raw: tuple[float, float]) -> Table:
    table = Table(title=f"{r.sessions:,} sessions ({r.megabytes:.0f} MB), {r.unsettled:,} runs left unfinished")
    for column in ("what", "measured", "target"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_row("open, all unfinished runs settled", f"{r.open_ms:.0f} ms", "< 1000 ms")
    table.add_row("first page of the list", f"{r.first_page_ms:.1f} ms", "< 20 ms")
    table.add_row("search, rarest word", f"{r.search_rare_ms:.1f} ms", "< 50 ms")
    table.add_row("search, commonest word", f"{r.search_common_ms:.1f} ms", "< 50 ms")
    table.add_row("raw SQLite commit, one row", f"{raw[0]:.0f} µs", "")
    table.add_row("raw append with fdatasync", f"{raw[1]:.0f} µs", "")
    return table


def memory_table(r: memory.Result) -> Table:
    table = Table(title=f"Recall over {r.facts:,} facts ({r.megabytes:.0f} MB)")
    for column in ("what", "measured", "target"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_row("a question, p50", f"{r.p50_ms:.1f} ms", "< 50 ms")
    table.add_row("a question, p99", f"{r.p99_ms:.1f} ms", "< 50 ms")
    table.add_row("right after a fact was written", f"{r.after_write_ms:.1f} ms", "< 50 ms")
    table.add_row("the first of a process, in the background at start", f"{r.first_ms:.0f} ms", "")
    return table


def models_table(taken: Mapping[tuple[str, str], Sequence[models.Result]]) -> Table:
    table = Table(title="Reading a model's stream: CPU µs per token, the upstream in another process")
    for column in ("scenario", *models.CLIENTS, "ratio", "target"):
        table.add_column(column, justify="left" if column == "scenario" else "right")
    for scenario in models.SCENARIOS:
        costs = [
            statistics.median(r.cpu_us_per_token for r in taken[scenario.name, client]) for client in models.CLIENTS
        ]
        shown = [f"{cost:.1f}" for cost in costs]
        table.add_row(scenario.name, *shown, f"{costs[0] / costs[1]:.2f}", f"≤ {scenario.target}")
    return table


def openai_table(taken: Mapping[openai.Wire, Sequence[openai.Result]]) -> Table:
    table = Table(title="From a durable event to the client's socket, a token per event")
    for column in ("wire format", "CPU µs/token", "over the native stream", "target", "bytes/token"):
        table.add_column(column, justify="left" if column == "wire format" else "right")
    costs = {wire: statistics.median(r.cpu_us_per_token for r in results) for wire, results in taken.items()}
    for wire, cost in costs.items():
        over = ["", ""] if wire == "native" else [f"{cost - costs['native']:.1f} µs", f"≤ {openai.TARGET:.0f} µs"]
        table.add_row(wire, f"{cost:.1f}", *over, f"{taken[wire][0].bytes_per_token:.0f}")
    return table


def nodes_table(lines: Sequence[nodes.Line]) -> Table:
    table = Table(title="Storage side by side: commits of 100 events; and 100 runs a node at 20 tokens/s, spread")
    for column in ("journal", "nodes", "events/s", "commit p50 ms", "CPU µs/token", "late p50 ms", "late p99 ms"):
        table.add_column(column, justify="left" if column == "journal" else "right")
    for line in lines:
        figures = (line.commit_p50_ms, line.cpu_us_per_token, line.late_p50_ms, line.late_p99_ms)
        shown = [f"{figure:.1f}" for figure in figures]
        table.add_row(line.storage, str(line.nodes), f"{line.events_per_second:,.0f}", *shown)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved repetitions; medians are shown")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--unsettled", type=int, default=1000)
    parser.add_argument("--nodes", action="store_true", help="only storage side by side, and how nodes add up")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    console = Console(width=max(Console().width, 150))
    if arguments.nodes:
        console.print(nodes_table(nodes.lines(console.print)))
        return
    rounds = 1 if arguments.quick else arguments.rounds
    chosen = [replace(s, tokens=max(20, s.tokens // 5)) if arguments.quick else s for s in streams.SCENARIOS]
    taken: dict[str, list[streams.Result]] = {s.name: [] for s in chosen}
    faces: dict[openai.Wire, list[openai.Result]] = {wire: [] for wire in openai.WIRES}
    with Progress(console=console, transient=True) as progress:
        read: dict[tuple[str, str], list[models.Result]] = {}
        task = progress.add_task("measuring", total=rounds * (len(chosen) + 2 * len(models.SCENARIOS)) + 2)
        for _ in range(rounds):
            for asked in models.SCENARIOS:
                for client in models.CLIENTS:
                    progress.update(task, description=f"{client}: {asked.name}")
                    read.setdefault((asked.name, client), []).append(models.in_process(asked, client))
                    progress.advance(task)
        for _ in range(rounds):
            for scenario in chosen:
                progress.update(task, description=scenario.name)
                taken[scenario.name].append(streams.in_process(scenario))
                progress.advance(task)
        for _ in range(rounds):
            for wire in openai.WIRES:
                faces[wire].append(openai.in_process(wire, 20_000 if arguments.quick else 200_000))
        progress.update(task, description="a large data directory")
        sessions = arguments.sessions // 20 if arguments.quick else arguments.sessions
        large = storage.in_process(sessions, min(arguments.unsettled, sessions))
        with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as directory:
            raw = storage.raw_commits(Path(directory))
        progress.advance(task)
        side_by_side = nodes.lines(lambda what: progress.update(task, description=what))
        progress.update(task, description="recall over many facts")
        recalled = memory.in_process(5000 if arguments.quick else 100_000)
        progress.advance(task)
    results = [medians(taken[s.name]) for s in chosen]
    console.print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    console.print(stream_table(results))
    by_name = {r.scenario: r for r in results}
    for kind in ("begun together", "spread"):
        ratio = (
            by_name[f"1,000 runs x 20/s, {kind}"].cpu_us_per_token
            / by_name[f"100 runs x 20/s, {kind}"].cpu_us_per_token
        )
        console.print(f"cost per token at 1,000 runs over that at 100, {kind}: {ratio:.2f} (target ≤ 1.15)")
    console.print(storage_table(large, raw))
    console.print(memory_table(recalled))
    console.print(models_table(read))
    console.print(openai_table(faces))
    console.print(nodes_table(side_by_side))
    if arguments.json:
        figures = {"streams": [asdict(r) for r in results], "storage": asdict(large), "raw_us": raw}
        figures["memory"] = asdict(recalled)
        figures["models"] = [asdict(r) for results in read.values() for r in results]
        figures["openai"] = [asdict(r) for results in faces.values() for r in results]
        figures["nodes"] = [asdict(line) for line in side_by_side]
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
