"""Traces of runs, received by an OTLP collector that the test serves."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from holdfast.app import tracing
from holdfast.core.ids import LOCAL, MessageId, RunId, SessionId
from holdfast.core.run import Run
from holdfast.core.run_spans import RunSpans
from tests.fork_server import Fresh
from tests.http.client import Served

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER: Final = "00f067aa0ba902b7"
HEADERS: Final = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
GUARD: Final = 60.0


class Collector(ThreadingHTTPServer):
    """Keeps every span that it is sent, and the bytes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.received = b""
        self.arrived = threading.Condition()

    def wait(self, name: str) -> list[Any]:
        """Until a span of this name is here; all of its trace."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: any(span.name == name for span in self.spans), GUARD)
            trace = next(span.trace_id for span in self.spans if span.name == name)
            return [span for span in self.spans if span.trace_id == trace]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = ExportTraceServiceRequest.FromString(body)
        with self.server.arrived:
            self.server.received += body
            for resource in request.resource_spans:
                attributes = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
                self.server.services.add(attributes["service.name"])
                for scope in resource.scope_spans:
                    self.server.spans += scope.spans
            self.server.arrived.notify_all()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _attributes(span: Any) -> dict[str, Any]:
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in span.attributes}


def test_a_run_is_a_tree_of_spans_below_its_request(collector: Collector, tmp_path: Path) -> None:
    """The run, its steps and its model and tool calls have spans in the caller's trace; nothing that was written is in
    them."""
    with Served(Fresh("tests.http.server"), tmp_path / "data") as served:
        sid = served.ready().session()
        script = [
            {"step": 0},
            {"say": "confidential words"},
            {"usage": [30, 4]},
            {"call": "c1", "name": "shell", "args": {"command": "confidential"}},
            {"step": 1},
            {"say": "more confidential words"},
        ]
        served.http.headers.update(HEADERS)
        rid = served.begin(sid, script, model="house/atlas")
        spans = collector.wait("invoke_agent chat")
        served.ended(rid)
        served.terminate()
    by_name = {span.name: span for span in spans}
    assert sorted(span.name for span in spans) == [
        "chat house/atlas",
        "chat house/atlas",
        "execute_tool shell",
        "invoke_agent chat",
        "step 0",
        "step 1",
    ]
    run = by_name["invoke_agent chat"]
    assert (run.trace_id.hex(), run.parent_span_id.hex()) == (TRACE, CALLER)
    attributes = _attributes(run)
    assert (attributes["holdfast.run.id"], attributes["holdfast.session.id"]) == (rid, sid)
    assert attributes["holdfast.run.status"] == "complete"
    assert [by_name[name].parent_span_id for name in ("step 0", "step 1")] == [run.span_id] * 2
    assert by_name["execute_tool shell"].parent_span_id == by_name["step 0"].span_id
    assert {span.parent_span_id for span in spans if span.name.startswith("chat ")} == {
        by_name["step 0"].span_id,
        by_name["step 1"].span_id,
    }
    assert all(run.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    first = min((span for span in spans if span.name.startswith("chat ")), key=lambda span: span.start_time_unix_nano)
    assert _attributes(first)["gen_ai.usage.input_tokens"] == 30
    assert collector.services == {"holdfast"}
    assert b"confidential" not in collector.received


def test_a_trace_survives_a_crash(collector: Collector, tmp_path: Path) -> None:
    """A run whose server was killed is traced by the next one, still below the request that started it."""
    with Served(Fresh("tests.http.server"), tmp_path / "data") as served:
        served.ready().http.headers.update(HEADERS)
        rid = served.stand(served.session(), [{"step": 0}, {"say": "half"}, {"meet": "here"}])
        served.kill()
    with Served(Fresh("tests.http.server"), tmp_path / "data") as served:
        served.ready()
        spans = {span.name: span for span in collector.wait("invoke_agent chat")}
        run = spans["invoke_agent chat"]
        assert (run.trace_id.hex(), run.parent_span_id.hex()) == (TRACE, CALLER)
        attributes = _attributes(run)
        assert (attributes["holdfast.run.id"], attributes["holdfast.run.status"]) == (rid, "interrupted")
        assert spans["step 0"].parent_span_id == run.span_id


@pytest.mark.parametrize(
    ("environment", "configured"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
    ],
)
def test_the_standard_variables_decide(environment: dict[str, str], *, configured: bool) -> None:
    """An endpoint turns traces on, and the usual switches turn them off."""
    assert tracing.is_configured(environment) is configured


def test_nothing_is_imported_unless_configured() -> None:
    """A server without traces does not load OpenTelemetry."""
    code = (
        "import sys; from holdfast.app import lifecycle, tracing; assert tracing.open_exporter({}) is None;"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=GUARD)
    assert done.stdout == "[]\n"


def _spans() -> RunSpans:
    mid = MessageId("msg_1")
    run = Run(RunId("run_1"), LOCAL, SessionId("ses_1"), mid, mid, "chat", None, None, "detached", 0.0, 0, True)
    return RunSpans(run)


def test_what_is_left_is_sent_when_the_server_stops(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing does not wait for the next batch to be due, and returns once the rest was sent."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    exporter = tracing.open_exporter(os.environ)
    assert exporter is not None
    exporter.export(_spans())
    exporter.close(GUARD)
    assert [span.name for span in collector.spans] == ["invoke_agent chat"]


def test_a_silent_collector_does_not_delay_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that takes connections and never answers costs the time limit, not one per batch."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        exporter = tracing.open_exporter(os.environ)
        assert exporter is not None
        for _ in range(600):  # more than one batch
            exporter.export(_spans())
        began = time.monotonic()
        exporter.close(0.2)
        assert time.monotonic() - began < 5.0  # a request alone would take ten


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_BSP_MAX_QUEUE_SIZE", "100"), ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "x")]
)
def test_a_wrong_variable_does_not_stop_the_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    """The SDK refuses it: that is logged, and the server works without traces."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    assert tracing.open_exporter(os.environ) is None
    assert "Runs are not traced" in caplog.text
