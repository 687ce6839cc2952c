"""Exports the spans of settled runs, and remembers which request a run belongs to until its journal says so. When too
many wait, further runs are not traced and counted as dropped; a failure never affects a run. Whether anything is
traced: `app.tracing`."""

import logging
from collections import deque
from typing import Final

import anyio

from holdfast.core.ids import RunId
from holdfast.core.run import Run
from holdfast.core.run_spans import RunSpans
from holdfast.engine.signals import Notifier
from holdfast.ports.journal import Journal
from holdfast.ports.tracing import SpanExporter

log = logging.getLogger("holdfast.engine")

_PAGE: Final = 1000
_TIME_LIMIT: Final = 5.0  # Seconds for reading a journal again
_MAX_REMEMBERED: Final = 10_000
MAX_WAITING: Final = 2000  # Settled runs that are not traced yet


class RunTracing:
    def __init__(self, journal: Journal, exporter: SpanExporter) -> None:
        self._journal = journal
        self._exporter = exporter
        self._traceparents: dict[RunId, str] = {}
        self._waiting: deque[Run] = deque()
        self._added = Notifier()
        self._progress = Notifier()
        self._exported = 0
        self.dropped = 0  # Runs that were not traced because too many waited

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

    def add(self, run: Run) -> None:
        """Call it when the run is settled. It is traced later, so that nobody waits for its journal to be read again,
        or not at all if too many wait, or if its journal is erased before."""
        if len(self._waiting) >= MAX_WAITING:
            self._traceparents.pop(run.id, None)
            self.dropped += 1
            return
        self._waiting.append(run)
        self._added.notify()

    async def run(self) -> None:
        """Runs as long as the engine."""
        reported = 0
        while True:
            await self._export_waiting()
            if self.dropped > reported:
                log.warning("%d runs were not traced: too many ended at once", self.dropped - reported)
                reported = self.dropped
            await self._added.wait()

    async def finish(self) -> None:
        """Before the node stops: export what waits, for a limited time."""
        with anyio.move_on_after(_TIME_LIMIT):
            await self._export_waiting()

    async def wait_for_waiting(self) -> None:
        """Before something is erased: until the runs that wait now are traced, for a limited time."""
        last = self._exported + len(self._waiting)
        with anyio.move_on_after(_TIME_LIMIT):
            while self._exported < last:
                await self._progress.wait()

    async def _export_waiting(self) -> None:
        while self._waiting:
            await self._export(self._waiting[0])
            self._waiting.popleft()
            self._exported += 1
            self._progress.notify()

    async def _export(self, run: Run) -> None:
        """A failure is logged: traces are not worth a run."""
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
        self._traceparents.pop(run.id, None)
