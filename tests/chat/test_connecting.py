"""Connecting model servers and entering keys: a key goes to the address that the page shows, and no other server's key
is replaced."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

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


def test_an_added_server_can_be_named(start: Start, recorder: Recorder) -> None:
    """The ids of its models begin with the name, which it keeps; that of a known provider is not used for another."""
    server = start()
    body = {"base_url": f"{recorder.url}/a/v1", "name": "office"}
    assert server.post("/api/providers", body, 200)["name"] == "office"
    assert any(model["id"] == "office/one" for model in server.get("/api/models")["items"])
    assert server.post("/api/providers", {**body, "name": "home"}, 200)["name"] == "office"
    other = {"base_url": f"{recorder.url}/b/v1", "name": "openai"}
    assert server.post("/api/providers", other, 200)["name"] == "openai-server"
    refused = server.refused("invalid", "POST", "/api/providers", {**other, "name": "My server"})
    assert refused["field"] == "name"


def test_added_servers_with_like_addresses_stay_apart(start: Start, recorder: Recorder) -> None:
    """Each address has a name of its own, which it keeps when it is connected again or another one is removed."""
    server = start()

    def connect(path: str, key: str) -> str:
        answer: dict[str, Any] = server.post("/api/providers", {"base_url": recorder.url + path, "key": key}, 200)
        return str(answer["name"])

    first = connect("/a/v1", "sk-a")
    second = connect("/b/v1", "sk-b")
    assert second == f"{first}-2"
    assert connect("/b/v1", "sk-c") == second
    found = {name: json.loads(text) for name, text in stored(server).items()}
    assert {name: entry["key"] for name, entry in found.items()} == {
        f"provider:{first}": "sk-a",
        f"provider:{second}": "sk-c",
    }
    server.call("DELETE", f"/api/providers/{first}", None, 204)
    assert connect("/b/v1", "sk-d") == second


def test_an_added_server_is_not_hidden_by_a_configured_one(start: Start, recorder: Recorder) -> None:
    """A name that the configuration file uses is not given to another server."""
    name = f"127-0-0-1-{recorder.server_port}"
    server = start(more={"providers": {name: {"base_url": f"{recorder.url}/a/v1", "models": ["m"]}}})
    added = server.post("/api/providers", {"base_url": f"{recorder.url}/b/v1", "key": "sk-b"}, 200)["name"]
    assert addresses(server) | {name: f"{recorder.url}/a/v1", added: f"{recorder.url}/b/v1"} == addresses(server)
    assert added == f"{name}-2"


def test_discovery_counts_the_models_of_a_fixed_list(start: Start, recorder: Recorder) -> None:
    """A provider whose models the configuration names is not asked, and is not reported as having none."""
    server = start(more={"providers": {"work": {"base_url": f"{recorder.url}/v1", "models": ["a", "b"]}}})
    found = {item["name"]: item for item in server.post("/api/providers/discover", None, 200)["items"]}
    assert (found["work"]["models"], found["work"]["reason"]) == (["a", "b"], None)
