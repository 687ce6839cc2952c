"""What a node measures: durations as histograms, tokens and errors by model, for a limited number of models.
`server.metrics` renders it."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final

from holdfast.core.run import Run

_LABELS: Final = 200  # Most models with metrics of their own: a request can contain any name
_OTHER: Final = "other"
_MAX_TOKENS: Final = 2**53  # Most tokens of one run; a sum beyond a float would break the whole page


class DurationHistogram:
    """Counts of durations by upper bound, in seconds; the last count has no bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        seconds = max(0.0, seconds)
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


class EngineMetrics:
    def __init__(self) -> None:
        slow = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
        self.queue = DurationHistogram(slow)  # From accepting a run to its first claim
        self.first_token = DurationHistogram(slow)  # From accepting a run to its first durable output
        self.turn = DurationHistogram(slow)  # From accepting a run to settling it, time spent waiting included
        self.commit = DurationHistogram((0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0))
        self.tokens: Counter[tuple[str, str]] = Counter()  # By model and direction
        self.errors: Counter[tuple[str, str]] = Counter()  # By model and error code
        self._models: set[str] = set()

    def count_settled(self, run: Run) -> None:
        model = self._label(run.model or "default")
        if run.usage is not None:
            self.tokens[model, "input"] += min(run.usage.input_tokens, _MAX_TOKENS)
            self.tokens[model, "output"] += min(run.usage.output_tokens, _MAX_TOKENS)
        if run.error is not None:
            self.errors[model, run.error.code] += 1
        if run.ended_at is not None:
            self.turn.observe(run.ended_at - run.created_at)

    def _label(self, model: str) -> str:
        if model not in self._models:
            if len(self._models) >= _LABELS:
                return _OTHER
            self._models.add(model)
        return model
