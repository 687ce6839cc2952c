"""Prometheus metrics, collected from the engine's counters on request. What is measured: `engine.metrics`."""

import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from holdfast import __version__
from holdfast.engine.engine import Engine
from holdfast.engine.metrics import DurationHistogram


class _EngineCollector(Collector):
    def __init__(self, engine: Engine, runs: Mapping[str, int], request_counts: "Counter[tuple[str, int]]") -> None:
        self._engine = engine
        self._runs = runs
        self._request_counts = request_counts

    def collect(self) -> Iterator[Metric]:
        engine = self._engine
        runs = GaugeMetricFamily("holdfast_runs", "Open runs by state.", labels=["status"])
        for state, count in self._runs.items():
            runs.add_metric([state], count)
        yield runs
        ended = CounterMetricFamily("holdfast_runs_ended", "Runs ended by this node, by state.", labels=["status"])
        for state, count in engine.settler.ended.items():
            ended.add_metric([state], count)
        yield ended
        yield GaugeMetricFamily("holdfast_runs_executing", "Runs executed by this node.", engine.supervisor.executing)
        yield CounterMetricFamily("holdfast_events", "Events committed to the journal.", engine.writer.events)
        yield CounterMetricFamily("holdfast_journal_commits", "Journal commits.", engine.writer.commits)
        seconds = engine.writer.commit_seconds
        yield CounterMetricFamily("holdfast_journal_commit_seconds", "Seconds spent in journal commits.", seconds)
        yield CounterMetricFamily("holdfast_journal_retries", "Retried journal commits.", engine.writer.retries)
        yield GaugeMetricFamily("holdfast_subscribers", "Clients subscribed to a run.", engine.feed.subscribers)
        recovered = engine.settler.recovered
        yield CounterMetricFamily("holdfast_recoveries", "Runs recovered from another process.", recovered)
        requests = CounterMetricFamily("holdfast_http_requests", "HTTP requests.", labels=["method", "status"])
        for (method, status), count in self._request_counts.items():
            requests.add_metric([method, str(status)], count)
        yield requests
        metrics = engine.metrics
        yield _histogram("holdfast_queue_seconds", "From accepting a run to its first claim.", metrics.queue)
        yield _histogram(
            "holdfast_first_token_seconds", "From accepting a run to its first output.", metrics.first_token
        )
        yield _histogram("holdfast_turn_seconds", "From accepting a run to its end.", metrics.turn)
        yield _histogram("holdfast_commit_duration_seconds", "Duration of a journal commit.", metrics.commit)
        tokens = CounterMetricFamily("holdfast_tokens", "Tokens of settled runs.", labels=["model", "direction"])
        for labels, count in metrics.tokens.items():
            tokens.add_metric(labels, count)
        yield tokens
        errors = CounterMetricFamily("holdfast_run_errors", "Runs that ended with an error.", labels=["model", "code"])
        for labels, count in metrics.errors.items():
            errors.add_metric(labels, count)
        yield errors
        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily("holdfast_build", "The version of this server.", build)


def _histogram(name: str, text: str, histogram: DurationHistogram) -> Metric:
    counts = list(accumulate(histogram.counts))
    bounds = [*map(str, histogram.bounds), "+Inf"]
    return HistogramMetricFamily(name, text, buckets=list(zip(bounds, counts, strict=True)), sum_value=histogram.total)


def render(engine: Engine, runs: Mapping[str, int], request_counts: "Counter[tuple[str, int]]") -> bytes:
    return generate_latest(_EngineCollector(engine, runs, request_counts))
