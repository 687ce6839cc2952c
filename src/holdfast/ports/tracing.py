"""The tracing port: receives the spans of settled runs. Whether there is a receiver: `app.tracing`; what a span
contains: `core.run_spans`."""

from typing import Protocol

from holdfast.core.run_spans import RunSpans


class SpanExporter(Protocol):
    def current_traceparent(self) -> str | None:
        """The trace that the request being handled belongs to, as its `traceparent` header; None without one."""

    def export(self, spans: RunSpans) -> None:
        """Hands over the spans of a settled run. Does not block; spans may be lost if their receiver is slow or
        down."""
