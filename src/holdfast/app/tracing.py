"""Decides by OpenTelemetry's standard environment variables whether runs are traced. Without them OpenTelemetry is not
imported. What spans contain: `core.run_spans`."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.app.open_telemetry import OpenTelemetryExporter

log = logging.getLogger("holdfast.app")

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SUPPORTED: Final = "http/protobuf"


def is_configured(environment: Mapping[str, str]) -> bool:
    """Whether the variables name a receiver of traces, and do not turn them off."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter:
        return exporter == "otlp"
    return any(environment.get(name, "").strip() for name in _ENDPOINTS)


def open_exporter(environment: Mapping[str, str]) -> "OpenTelemetryExporter | None":
    """None if tracing is not configured, or cannot be: that is logged, and the server works without it."""
    if not is_configured(environment):
        return None
    protocol = next((found for name in _PROTOCOLS if (found := environment.get(name, "").strip())), _SUPPORTED)
    if protocol != _SUPPORTED:
        log.warning("Runs are not traced: the protocol %s is not supported; use %s", protocol, _SUPPORTED)
        return None
    try:
        from holdfast.app.open_telemetry import OpenTelemetryExporter
    except ImportError as error:
        log.warning("Runs are not traced: %s. Run `pip install 'holdfast[otel]'`", error)
        return None
    try:
        return OpenTelemetryExporter.from_environment(environment)
    except Exception as error:  # noqa: BLE001 - the SDK raises what it likes about a variable
        log.warning("Runs are not traced: %s. Check the variables that begin with OTEL_", error)
        return None
