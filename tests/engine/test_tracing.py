"""Runs are traced after they ended, and nobody waits for that."""

from dataclasses import dataclass, field

import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import Say
from holdfast.core.run_spans import RunSpans
from holdfast.engine import run_tracing
from tests.harness import World, running
from tests.storage_interceptors import Hold, until

pytestmark = pytest.mark.anyio


@dataclass
class KeptSpans:
    exported: list[RunSpans] = field(default_factory=list)

    def current_traceparent(self) -> str | None:
        return None

    def export(self, spans: RunSpans) -> None:
        self.exported.append(spans)

    @property
    def runs(self) -> list[str]:
        return [spans.run.id for spans in self.exported]


def slow_journal() -> Hold:
    return Hold(lambda call, args: call == "journal.read", every=True)


async def test_no_run_waits_for_its_trace(memory: World) -> None:
    """With a journal that does not answer, runs end and are announced; they are traced once it does, in order."""
    spans, slow = KeptSpans(), slow_journal()
    async with running([Say("an answer")], memory, tap=slow, span_exporter=spans) as it:
        runs = [await it.turn() for _ in range(3)]
        await until(lambda: it.engine.settler.ended["complete"] == 3)
        await slow.held()
        assert spans.runs == []
        slow.go.set()
        await until(lambda: len(spans.exported) == 3)
    assert spans.runs == [run.id for run in runs]


async def test_a_run_is_traced_before_it_is_erased(memory: World) -> None:
    """A turn that is erased as soon as it has ended still has its model call in the trace."""
    spans, slow = KeptSpans(), slow_journal()
    async with running([Say("an answer")], memory, tap=slow, span_exporter=spans) as it:
        run = await it.turn()
        await slow.held()
        await it.engine.runs.erase(run.id)
        await until(it.engine.retention.erasing.locked)
        for _ in range(200):
            await checkpoint()
        assert "journal.purge" not in slow.seen
        slow.go.set()
        await until(lambda: "journal.purge" in slow.seen)
        assert [span.kind for span in spans.exported[0].finish()][-1] == "model"


async def test_what_waits_is_traced_before_the_node_stops(memory: World) -> None:
    """The trace that is being read when the stop comes is not lost."""
    spans = KeptSpans()
    slow = Hold(lambda call, args: call == "journal.read")
    async with running([Say("an answer")], memory, tap=slow, span_exporter=spans) as it:
        run = await it.turn()
        await slow.held()
    assert spans.runs == [run.id]


async def test_runs_beyond_the_limit_are_counted(
    memory: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What waits to be traced is bounded: the rest is dropped and counted."""
    monkeypatch.setattr(run_tracing, "MAX_WAITING", 2)
    spans, slow = KeptSpans(), slow_journal()
    async with running([Say("an answer")], memory, tap=slow, span_exporter=spans) as it:
        runs = [await it.turn() for _ in range(4)]
        await until(lambda: it.engine.settler.ended["complete"] == 4)
        slow.go.set()
        await until(lambda: "2 runs were not traced" in caplog.text)
    assert spans.runs == [run.id for run in runs[:2]]
