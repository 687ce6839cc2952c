"""Connecting model servers and entering keys: a key goes to the address that the page shows, and no other server's key
is replaced."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from holdfast.storage.key_file import KeyFile
from tests.http.client import Served
from tests.http.conftest import Start


class Recorder(ThreadingHTTPServer):
    """A model server, or a proxy in front of some, that lists one model at every path and records each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, str | None]] = []  # the target, and the key

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        body = json.dumps({"data": [{"id": "one"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with recording() as server:
        yield server


@contextmanager
def recording() -> Iterator[Recorder]:
    with Recorder() as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server
        server.shutdown()


def addresses(server: Served) -> dict[str, str]:
    return {item["name"]: item["base_url"] for item in server.get("/api/settings")["providers"]}


def stored(server: Served) -> dict[str, str]:
    return dict(KeyFile(server.data_dir).read().provider_keys)


@pytest.mark.parametrize("page", ["setup", "settings"])
def test_a_key_for_a_remote_ollama_goes_there(start: Start, recorder: Recorder, page: str) -> None:
    """The address that the environment names is where a key is sent, at once and afterwards."""
    remote = "http://ollama.example.com/v1"
    server = start(environment={"OLLAMA_HOST": "http://ollama.example.com", "HTTP_PROXY": recorder.url})
    assert addresses(server)["ollama"] == remote
    if page == "setup":
        answer = server.post("/api/providers", {"provider": "ollama", "key": "sk-typed"}, 200)
        assert (answer["base_url"], answer["models"]) == (remote, ["one"])
    else:
        assert server.call("PUT", "/api/settings/keys/ollama", {"key": "sk-typed"}, 200)["verified"]
    assert ("http://ollama.example.com/api/tags", "Bearer sk-typed") in recorder.seen
    assert addresses(server)["ollama"] == remote
    assert stored(server)["ollama"] == "sk-typed"


def test_connecting_an_added_server_again_replaces_its_key(start: Start, recorder: Recorder) -> None:
    """The new key is the one that is tested and stored with the server's address, not beside it."""
    server = start()
    name = server.post("/api/providers", {"base_url": recorder.url, "key": "sk-old"}, 200)["name"]
    recorder.seen.clear()
    assert server.post("/api/providers", {"provider": name, "key": "sk-new"}, 200)["models"] == ["one"]
    assert {key for _, key in recorder.seen} == {"Bearer sk-new"}
    assert name not in stored(server)
    assert json.loads(stored(server)[f"provider:{name}"])["key"] == "sk-new"
