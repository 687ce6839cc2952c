"""Plots of a run, if matplotlib is installed (`make bench` installs it)."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench import token_cost
from bench.token_cost import Sample

COLORS: Final[Mapping[str, str]] = {
    "Holdfast": "#0f766e",
    "Holdfast /v1": "#5eb5ab",
    "bare relay": "#9ca3af",
    "LiteLLM proxy": "#d97706",
    "Open WebUI": "#7c3aed",
}
PICTURES: Final = (
    ("cost.png", "CPU per token (µs), lower is better", "cpu_us_per_token"),
    ("delay.png", "Delay of the last token, p99 (ms), lower is better", "end_p99_ms"),
)


def draw(samples: Sequence[Sample], directory: Path) -> list[Path]:
    """Draws nothing if matplotlib is missing or no tokens were measured."""
    try:
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return []
    if not samples:
        return []
    found = token_cost.medians(samples)
    drawn = []
    for name, title, field in PICTURES:
        path = directory / name
        _bars(pyplot, title, {key: float(getattr(sample, field)) for key, sample in found.items()}, path)
        drawn.append(path)
    return drawn


def _bars(pyplot: Any, title: str, values: Mapping[tuple[str, str], float], path: Path) -> None:
    scenarios = list(dict.fromkeys(scenario for scenario, _ in values))
    servers = [name for name in COLORS if any(server == name for _, server in values)]
    figure, axes = pyplot.subplots(figsize=(11, 4.5), dpi=110)
    width = 0.8 / len(servers)
    for n, server in enumerate(servers):
        at = [k for k, scenario in enumerate(scenarios) if (scenario, server) in values]
        heights = [max(values[scenarios[k], server], 1e-3) for k in at]
        bars = axes.bar([k + (n - (len(servers) - 1) / 2) * width for k in at], heights, width, label=server)
        for bar, height in zip(bars, heights, strict=True):
            bar.set_color(COLORS[server])
            middle = bar.get_x() + bar.get_width() / 2
            axes.text(middle, height * 1.06, _short(height), ha="center", va="bottom", fontsize=7, rotation=90)
    axes.set_yscale("log")
    axes.set_xticks(
        range(len(scenarios)), [scenario.replace(", ", "\n").replace(" x ", "\nx ") for scenario in scenarios]
    )
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=8, ncols=len(servers), loc="lower left", bbox_to_anchor=(0.0, 1.06))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
