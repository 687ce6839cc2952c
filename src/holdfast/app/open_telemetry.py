"""Exports the spans of runs with OpenTelemetry's SDK, which the extra `otel` installs. Whether runs are traced:
`app.tracing`; what spans contain: `core.run_spans`."""

import logging
import threading
from collections.abc import Mapping
from typing import Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast import __version__
from holdfast.core.run_spans import RunSpans, SpanKind

log = logging.getLogger("holdfast.app")

_NS: Final = 1_000_000  # Nanoseconds in a millisecond
_CLOSE_TIME: Final = 3.0  # Seconds for sending the rest when the server stops
_KINDS: Final[Mapping[SpanKind, trace.SpanKind]] = {
    "run": trace.SpanKind.SERVER,
    "step": trace.SpanKind.INTERNAL,
    "model": trace.SpanKind.CLIENT,
    "tool": trace.SpanKind.INTERNAL,
}
_PROPAGATOR: Final = TraceContextTextMapPropagator()


class OpenTelemetryExporter:
    """Implements `ports.tracing.SpanExporter`. Spans are sent in batches by a thread of the SDK, whose queue is
    bounded."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("holdfast", __version__)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "OpenTelemetryExporter":
        """The SDK reads the standard variables itself; only the service has a default name here."""
        attributes = {"service.version": __version__}
        named = environment.get("OTEL_SERVICE_NAME") or "service.name=" in environment.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        )
        if not named:
            attributes["service.name"] = "holdfast"
        provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def current_traceparent(self) -> str | None:
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        return carrier.get("traceparent")

    def export(self, spans: RunSpans) -> None:
        records = spans.finish()
        carrier = {} if spans.traceparent is None else {"traceparent": spans.traceparent}
        request = _PROPAGATOR.extract(carrier, otel_context.Context())
        opened: list[trace.Span] = []
        for record in records:
            above = request if record.parent is None else trace.set_span_in_context(opened[record.parent], request)
            span = self._tracer.start_span(
                record.name,
                above,
                _KINDS[record.kind],
                attributes=record.attributes,
                start_time=record.start * _NS,
            )
            for name, at, attributes in record.notes:
                span.add_event(name, attributes, at * _NS)
            if record.error is not None:
                span.set_attribute("error.type", record.error)
                span.set_status(trace.StatusCode.ERROR, record.error)
            opened.append(span)
        for span, record in zip(opened, records, strict=True):
            span.end(record.end * _NS)

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """The app, which then knows the trace of each request."""
        return TraceContextMiddleware(app)

    def close(self, at_most: float = _CLOSE_TIME) -> None:
        """Sends what is left, for at most this many seconds. Blocks. The SDK's own limits do not hold if the receiver
        takes a connection and never answers."""
        closing = threading.Thread(target=self._provider.shutdown, name="closing traces", daemon=True)
        closing.start()
        closing.join(at_most)
        if closing.is_alive():
            log.warning("The last traces were not sent: their receiver did not answer in time")


class TraceContextMiddleware:
    """Makes the trace that a request names in its `traceparent` header the current one while it is handled."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = [value for name, value in scope.get("headers", ()) if name == b"traceparent"]
        if scope["type"] != "http" or len(found) != 1:
            await self._app(scope, receive, send)
            return
        request = _PROPAGATOR.extract({"traceparent": found[0].decode("latin-1")})
        token = otel_context.attach(request)
        try:
            await self._app(scope, receive, send)
        finally:
            otel_context.detach(token)
