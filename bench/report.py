"""Prints the results as tables: ratios to the relay in the same run first, then absolute figures."""

import math
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from bench import engine_streams, model_client, token_cost, whole_turns
from bench.figures import Figure, MissingFigure
from bench.token_cost import Sample
from bench.whole_turns import TurnSample

RELAY = "bare relay"
_DELAY_ADDED = 1.0
"""Highest acceptable mid-stream delay above the relay's, in milliseconds: p50 at 100 streams x 20/s."""
AGENT_TARGETS: Mapping[str, float] = {
    "100 runs, full speed": 8.0,
    "100 runs x 20/s, begun together": 30.0,
    "100 runs x 20/s, spread": 30.0,
    "1,000 runs x 20/s, begun together": 30.0,
    "1,000 runs x 20/s, spread": 30.0,
}


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        words = column in ("scenario", "server", "what")
        table.add_column(column, justify="left" if words else "right", no_wrap=words)
    return table


def _judged(text: str, met: bool | None) -> str:
    return text if met is None else f"[{'green' if met else 'red'}]{text}[/]"


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def token_table(samples: Sequence[Sample], missing: Sequence[MissingFigure]) -> Table:
    found = token_cost.medians(samples)
    table = _table(
        "From the model to the client, without the start and the end of runs, medians",
        "scenario",
        "server",
        "CPU ÷ relay",
        "target",
        "CPU µs/token",
        "mid-stream p50",
        "p99 ms",
        "at the end p99 ms",
        "begin ms/run",
        "end ms/run",
        "peak MB",
        "whole",
    )
    targets = {s.name: s.target for s in token_cost.SCENARIOS}
    absent = {(each.what, each.server): each.reason for each in missing if each.part == "tokens"}
    keys = dict.fromkeys([*found, *absent])
    for scenario in dict.fromkeys(scenario for scenario, _ in keys):
        relay = found.get((scenario, RELAY))
        for server in dict.fromkeys(server for name, server in keys if name == scenario):
            sample = found.get((scenario, server))
            if sample is None:
                table.add_row(scenario, server, "[dim]not measured[/]")
                continue
            ratio = sample.cpu_us_per_token / relay.cpu_us_per_token if relay else math.nan
            target = targets.get(scenario) if server.startswith("Holdfast") else None
            table.add_row(
                scenario,
                server,
                _judged(_number(ratio), None if target is None or math.isnan(ratio) else ratio <= target),
                "" if target is None else f"≤ {target}",
                _number(sample.cpu_us_per_token),
                _number(sample.mid_p50_ms),
                _number(sample.mid_p99_ms),
                _number(sample.end_p99_ms),
                _number(sample.cpu_ms_per_begin),
                _number(sample.cpu_ms_per_end),
                _number(sample.peak_mb),
                _judged(f"{sample.whole}/{sample.streams}", None if sample.whole == sample.streams else False),
            )
        table.add_section()
    return table


def turn_table(samples: Sequence[TurnSample]) -> Table:
    found = whole_turns.medians(samples)
    table = _table(
        "Whole turns, from the request until the run is settled, medians",
        "scenario",
        "server",
        "CPU ÷ relay",
        "target",
        "CPU ms/turn",
        "first token p50 ms",
        "p99 ms",
        "last token late p99 ms",
        "turns/s",
        "peak MB",
        "whole",
    )
    scenarios = {s.name: s for s in whole_turns.SCENARIOS}
    for name in dict.fromkeys(scenario for scenario, _ in found):
        relay, scenario = found.get((name, RELAY)), scenarios[name]
        for (each, server), sample in found.items():
            if each != name:
                continue
            ratio = sample.cpu_ms / relay.cpu_ms if relay else math.nan
            target = scenario.target if server.startswith("Holdfast") else None
            met = None if target is None or math.isnan(ratio) else ratio <= target
            most = scenario.target_ms if server.startswith("Holdfast") else None
            table.add_row(
                name,
                server,
                _judged(_number(ratio), met),
                "" if target is None else f"≤ {target}" + ("" if most is None else f", ≤ {most:g} ms"),
                _judged(_number(sample.cpu_ms), None if most is None else sample.cpu_ms <= most),
                _number(sample.first_p50_ms),
                _number(sample.first_p99_ms),
                _number(sample.end_p99_ms),
                _number(sample.turns_per_second),
                _number(sample.peak_mb),
                _judged(f"{sample.whole}/{sample.turns}", None if sample.whole == sample.turns else False),
            )
        table.add_section()
    return table


def compared_targets(samples: Sequence[Sample]) -> list[Figure]:
    """Figures whose target compares two servers or belongs to one scenario only."""
    found, kept = token_cost.medians(samples), []
    for way in ("", ", in step"):
        ours, theirs = (found.get((f"100 streams x 20/s{way}", name)) for name in ("Holdfast", RELAY))
        if ours and theirs:
            what = f"mid-stream delay p50 above the relay's, 100 x 20/s{way}"
            kept.append(Figure("tokens", what, ours.mid_p50_ms - theirs.mid_p50_ms, target=_DELAY_ADDED))
        ours, theirs = (found.get((f"1,000 streams x 20/s{way}", name)) for name in ("Holdfast", RELAY))
        if ours and theirs:
            what = f"end delay p99 at 1,000 x 20/s{way} (target: the relay's)"
            kept.append(Figure("tokens", what, ours.end_p99_ms, target=theirs.end_p99_ms))
            kept.append(Figure("tokens", f"peak memory at 1,000 streams{way}", ours.peak_mb, "MB", target=300.0))
    promised = (("100 streams, full speed", 40.0), ("100 streams x 20/s", 8.0), ("100 streams x 20/s, in step", 8.0))
    for scenario, least in promised:
        ours, theirs = found.get((scenario, "Holdfast")), found.get((scenario, "LiteLLM proxy"))
        if ours and theirs:
            share = ours.cpu_us_per_token / theirs.cpu_us_per_token
            kept.append(Figure("tokens", f"CPU ÷ LiteLLM's, {scenario}", share, "", target=1 / least))
    return kept


def figure_table(figures: Sequence[Figure], missing: Sequence[MissingFigure]) -> Table:
    table = _table("Latency, memory and disk", "what", "server", "measured", "target")
    for each in figures:
        target = "" if each.target is None else f"≤ {_number(each.target)} {each.unit}"
        target = target if each.least is None else f"≥ {_number(each.least)} {each.unit}"
        table.add_row(each.what, each.server, _judged(f"{_number(each.value)} {each.unit}", each.met), target)
    for absent in missing:
        if absent.part != "tokens":
            table.add_row(absent.what, absent.server, "[dim]not measured[/]")
    return table


def agent_table(results: Sequence[engine_streams.EngineResult]) -> Table:
    table = _table(
        "Inside the engine, from agent to subscriber, each event committed (synchronous=FULL) before it is shown",
        "scenario",
        "CPU µs/token",
        "target",
        "events/token",
        "tokens/s",
        "events/commit",
        "late p50 ms",
        "late p99 ms",
        "ending, CPU ms/run",
        "peak MB",
    )
    for r in results:
        target = AGENT_TARGETS.get(r.scenario)
        table.add_row(
            r.scenario,
            _judged(_number(r.cpu_us_per_token), None if target is None else r.cpu_us_per_token <= target),
            "" if target is None else f"≤ {target:.0f}",
            f"{r.events_per_token:.3f}",
            f"{r.tokens_per_second:,.0f}",
            f"{r.events_per_commit:.1f}",
            _number(r.late_p50_ms),
            _number(r.late_p99_ms),
            f"{r.ending_ms_per_run:.2f}",
            f"{r.peak_mb:.0f}",
        )
    return table


def client_table(results: Sequence[model_client.ClientResult]) -> Table:
    table = _table(
        "Reading a model's stream: CPU µs per token, the upstream in another process",
        "scenario",
        *model_client.CLIENTS,
        "ratio",
        "target",
    )
    for scenario in model_client.SCENARIOS:
        costs = [
            model_client.middle([r for r in results if (r.scenario, r.client) == (scenario.name, client)])
            for client in model_client.CLIENTS
        ]
        ratio = costs[0] / costs[1]
        shown = _judged(f"{ratio:.2f}", ratio <= scenario.target)
        table.add_row(scenario.name, *(_number(cost) for cost in costs), shown, f"≤ {scenario.target}")
    return table


def show(
    console: Console,
    turns: Sequence[TurnSample],
    samples: Sequence[Sample],
    figures: Sequence[Figure],
    missing: Sequence[MissingFigure],
    inside: Sequence[engine_streams.EngineResult],
    reading: Sequence[model_client.ClientResult],
) -> None:
    if turns:
        console.print(turn_table(turns))
    if samples or any(each.part == "tokens" for each in missing):
        console.print(token_table(samples, missing))
    shown = [*whole_turns.first_token_added(turns), *compared_targets(samples), *figures]
    if shown or any(each.part != "tokens" for each in missing):
        console.print(figure_table(shown, missing))
    for server, reason in dict.fromkeys((each.server, each.reason) for each in missing):
        console.print(f"{server} was not measured: {reason}", markup=False)
    if inside:
        console.print(agent_table(inside))
    if reading:
        console.print(client_table(reading))
