"""Exports the spans of settled runs, and remembers which request a run belongs to until its journal says so."""

import logging
from typing import Final

import anyio

from holdfast.core.ids import RunId
from holdfast.core.run import Run
from holdfast.core.run_spans import RunSpans
from holdfast.ports.journal import Journal
from holdfast.ports.tracing import SpanExporter

log = logging.getLogger("holdfast.engine")

_PAGE: Final = 1000
_TIME_LIMIT: Final = 5.0  # Seconds for reading a journal again: settling must not wait longer
_MAX_REMEMBERED: Final = 10_000


class RunTracing:
    def __init__(self, journal: Journal, exporter: SpanExporter) -> None:
        self._journal = journal
        self._exporter = exporter
        self._traceparents: dict[RunId, str] = {}

    def remember_request(self, rid: RunId) -> None:
        """Call it before the run is stored: it may start at once. A run that another node starts is not linked to its
        request."""
        traceparent = self._exporter.current_traceparent()
        if traceparent is not None:
            self._traceparents[rid] = traceparent
            if len(self._traceparents) > _MAX_REMEMBERED:
                del self._traceparents[next(iter(self._traceparents))]

    def traceparent_of(self, rid: RunId) -> str | None:
        return self._traceparents.get(rid)

    async def export(self, run: Run) -> None:
        """A failure is logged: traces are not worth a run."""
        self._traceparents.pop(run.id, None)
        spans, after = RunSpans(run), 0
        try:
            with anyio.move_on_after(_TIME_LIMIT):
                while page := await self._journal.read(run.id, after, _PAGE):
                    spans.add(page)
                    after = page[-1].seq
                    await anyio.lowlevel.checkpoint()
            self._exporter.export(spans)
        except Exception:
            log.warning("run %s could not be traced", run.id, exc_info=True, extra=run.log_extra)
