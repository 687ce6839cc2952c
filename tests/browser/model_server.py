"""A small model server that speaks Ollama's and OpenAI's formats, on a port of this machine."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ModelServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, models: Sequence[str], key: str | None, answer: str, port: int, rejects: str | None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.models, self.key, self.answer, self.rejects = list(models), key, answer, rejects

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_GET(self) -> None:
        names = self.server.models
        if self.path == "/api/tags" and self.server.key is None:
            self._send({"models": [{"name": name} for name in names]})
        elif self.path != "/v1/models":
            self._send({"error": "not found"}, 404)
        elif self.server.key not in (None, self.headers.get("Authorization", "").removeprefix("Bearer ")):
            self._send({"error": {"message": "invalid api key"}}, 401)
        else:
            self._send({"data": [{"id": name} for name in names]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or "{}")
        rejects = self.server.rejects
        if rejects is not None and rejects in body:
            self._send({"error": {"message": f"Unsupported value: {rejects!r} does not support {body[rejects]}."}}, 400)
        elif self.path == "/v1/chat/completions":
            chunk = {"choices": [{"index": 0, "delta": {"content": self.server.answer}, "finish_reason": "stop"}]}
            self._send(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", kind="text/event-stream")
        else:
            self._send({"error": "not found"}, 404)

    def _send(self, body: Any, status: int = 200, kind: str = "application/json") -> None:
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def model_server(
    *models: str,
    key: str | None = None,
    answer: str = "Hello from the model.",
    port: int = 0,
    rejects: str | None = None,
) -> Iterator[ModelServer]:
    with ModelServer(models, key, answer, port, rejects) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
