"""What agents work with, seen and changed through the API: models are tried, tools listed, MCP servers kept."""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from holdfast.server.authenticator import set_password
from holdfast.storage.key_file import KeyFile
from tests.chat.conftest import settings
from tests.chat.model_server import ScriptedModelServer
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import Start
from tests.tools import raw_mcp_server
from tests.tools.raw_mcp_server import INITIALIZED
from tests.upstream import Head, says

SAYS = {
    "initialize": {**INITIALIZED, "instructions": "Add before you note."},
    "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
}
PROGRAM = {"command": sys.executable, "args": [raw_mcp_server.__file__, json.dumps({"results": SAYS})]}
"""An MCP server that starts quickly: on a busy machine one that imports the SDK takes longer than a server may."""


def logged_in(server: Served) -> Served:
    set_password(KeyFile(server.data_dir), "correct horse")
    assert server.http.post("/api/login", json={"password": "correct horse"}).status_code == 204
    return server


@pytest.fixture(scope="module")
def administered(
    tmp_path_factory: pytest.TempPathFactory, chat_forker: ServerForker, up: ScriptedModelServer
) -> Iterator[Served]:
    """One server with a password for all tests that leave it running: each imports the MCP client library."""
    with Served(chat_forker, tmp_path_factory.mktemp("administered") / "data", **settings(up)) as served:
        yield logged_in(served.ready())


@pytest.fixture
def admin(administered: Served) -> Iterator[Served]:
    """The same, without MCP servers before and after."""
    yield administered
    assert "Exception in ASGI application" not in administered.complaints, administered.complaints
    for item in administered.get("/api/mcp")["items"]:
        administered.call("DELETE", f"/api/mcp/{item['name']}", None, 204)


def test_a_model_is_tried(shared: Served, up: ScriptedModelServer) -> None:
    """A model that answers says its word; one that does not says why, in words that a person can act on."""
    good = up.play("tried", says("Hello!"))
    tried = shared.post("/api/models/test", {"model": good}, 200)
    assert (tried["ok"], tried["answer"], tried["reason"]) == (True, "Hello!", None)
    assert up.asked("tried")["messages"][-1]["role"] == "user"
    bad = up.play("refusing", [Head(401, {"Content-Length": "0"}, chunked=False)])
    tried = shared.post("/api/models/test", {"model": bad}, 200)
    assert not tried["ok"]
    assert "key" in tried["reason"]


def test_tools_are_listed_with_what_they_do_by_themselves(shared: Served) -> None:
    """What only looks is allowed, what changes things asks."""
    tools = {tool["name"]: tool for tool in shared.get("/api/tools")["items"]}
    assert tools["shell"]["rule"] == "ask"
    assert tools["read_file"]["rule"] == "allow"
    assert all(tool["server"] is None and tool["description"] for tool in tools.values())
    assert tools["read_file"]["sandbox"] is None
    sandbox = tools["shell"]["sandbox"]
    assert sandbox["active"] != bool(sandbox["reason"])


def test_a_program_for_tools_needs_a_password(start: Start) -> None:
    """DESIGN §9: whoever may have programs started is told from anybody; an address may be named without that."""
    server = start()
    refused = server.call("PUT", "/api/mcp/mine", PROGRAM, 409)
    assert refused["type"] == "not-allowed"
    server.call("PUT", "/api/mcp/far", {"url": "http://127.0.0.1:1/mcp", "token": "sk-secret"}, 204)
    listed = server.http.get("/api/mcp")
    assert "sk-secret" not in listed.text
    (far,) = listed.json()["items"]
    assert (far["name"], far["kind"], far["target"], far["editable"]) == ("far", "http", "http://127.0.0.1:1/mcp", True)
    tried = server.post("/api/mcp/far/test", {}, 200)
    assert not tried["ok"]
    assert tried["reason"].startswith("Could not connect to far (127.0.0.1:1): ")
    assert server.get("/api/mcp")["items"][0]["failure"]


def test_servers_are_added_tried_kept_and_removed(start: Start) -> None:
    """P1: an MCP server that was added gives its tools from then on, also after a restart, until it is removed."""
    server = logged_in(start())
    server.call("PUT", "/api/mcp/mine", PROGRAM, 204)
    tried = server.post("/api/mcp/mine/test", {}, 200)
    assert tried["ok"], tried
    assert tried["tools"]
    assert all(name.startswith("mine__") for name in tried["tools"])
    assert [(s["name"], s["connected"]) for s in server.get("/api/mcp")["items"]] == [("mine", True)]
    server.kill()
    server = logged_in(start())
    assert {tool["server"] for tool in server.get("/api/tools")["items"]} == {None, "mine"}
    server.call("DELETE", "/api/mcp/mine", None, 204)
    assert server.get("/api/mcp")["items"] == []
    assert {tool["server"] for tool in server.get("/api/tools")["items"]} == {None}
    server.call("DELETE", "/api/mcp/mine", None, 404)


def test_servers_have_variables_headers_and_a_directory(admin: Served, tmp_path: Path) -> None:
    """Values are stored and never shown, reach the program, and do not follow to another program or address."""
    admin.call("PUT", "/api/mcp/mine", {**PROGRAM, "env": {"GIVEN": "s3cret"}, "cwd": str(tmp_path)}, 204)
    assert admin.post("/api/mcp/mine/test", {}, 200)["ok"]
    remote = {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "s3cret"}}
    admin.call("PUT", "/api/mcp/far", remote, 204)
    listed = admin.http.get("/api/mcp")
    assert "s3cret" not in listed.text
    mine, far = sorted(listed.json()["items"], key=lambda each: str(each["kind"]), reverse=True)
    assert (mine["env"], mine["cwd"], far["headers"]) == (["GIVEN"], str(tmp_path), ["X-Key"])
    admin.call("PUT", "/api/mcp/mine", {**PROGRAM, "cwd": str(tmp_path)}, 204)
    assert admin.get("/api/mcp")["items"][0]["env"] == ["GIVEN"], "omitted variables are kept"
    admin.call("PUT", "/api/mcp/mine", {**PROGRAM, "env": {"GIVEN": None, "MORE": "x"}, "cwd": str(tmp_path)}, 204)
    stored = KeyFile(admin.data_dir).read().provider_keys["mcp-env:mine"]
    assert json.loads(stored) == {"GIVEN": "s3cret", "MORE": "x"}, "null keeps a value"
    wrong = admin.call("PUT", "/api/mcp/mine", {**PROGRAM, "env": {"NEVER": None}}, 422)
    assert wrong["field"] == "env.NEVER"
    admin.call("PUT", "/api/mcp/mine", {"command": sys.executable, "args": ["-c", "other"]}, 204)
    admin.call("PUT", "/api/mcp/far", {"url": "http://127.0.0.1:2/mcp"}, 204)
    for each in admin.get("/api/mcp")["items"]:
        assert (each["env"], each["headers"]) == ([], [])
    for field, wrong in (
        ("headers", {**PROGRAM, "headers": {"X": "y"}}),
        ("token", {**PROGRAM, "token": "s3cret"}),
        ("env", {**remote, "env": {"A": "b"}}),
        ("cwd", {**remote, "cwd": "/tmp"}),
    ):
        assert admin.call("PUT", "/api/mcp/wrong", wrong, 422)["field"] == field
    admin.call("PUT", "/api/mcp/wrong", {**remote, "headers": {"X": "a\r\nB: c"}}, 422)
    assert "s3cret" not in (admin.data_dir / "keys.json").read_text()


def test_instructions_of_a_server_reach_the_model(start: Start, up: ScriptedModelServer) -> None:
    """They are in the system prompt, marked as the server's, if the model is offered tools."""
    server = start(more={"mcp": {"sums": PROGRAM}})
    model = up.play("instructed", says("Fine."))
    assert server.ended(server.begin(server.session(), "Hello", model=model))["status"] == "complete"
    system = up.asked("instructed")["messages"][0]
    assert system["role"] == "system"
    assert "- sums: Add before you note." in system["content"]


def test_the_error_output_of_a_program_is_shown(admin: Served) -> None:
    """A program that does not start says why, when it is tested and in the list."""
    broken = {"command": sys.executable, "args": ["-c", "raise SystemExit('no such database')"]}
    admin.call("PUT", "/api/mcp/broken", broken, 204)
    tried = admin.post("/api/mcp/broken/test", {}, 200)
    assert not tried["ok"]
    assert "no such database" in tried["reason"]
    assert admin.get("/api/mcp")["items"][0]["stderr"] == "no such database"
    admin.call("PUT", "/api/mcp/broken", {"command": "no-such-program"}, 204)
    tried = admin.post("/api/mcp/broken/test", {}, 200)
    assert "command not found: no-such-program" in tried["reason"]


def test_servers_of_the_configuration_stay_there(start: Start) -> None:
    """What holdfast.toml names is shown and not changed from here; half a description is refused."""
    server = logged_in(start(more={"mcp": {"fixed": PROGRAM}}))
    assert [(s["name"], s["editable"]) for s in server.get("/api/mcp")["items"]] == [("fixed", False)]
    assert server.call("PUT", "/api/mcp/fixed", {"url": "http://127.0.0.1:1/"}, 422)["field"] == "name"
    server.call("DELETE", "/api/mcp/fixed", None, 409)
    assert server.call("PUT", "/api/mcp/half", {}, 422)["field"] == "command"
    assert server.call("PUT", "/api/mcp/half", {"url": "file:///etc/passwd"}, 422)["field"] == "url"
    server.call("PUT", "/api/mcp/Bad..Name", {"url": "http://127.0.0.1:1/"}, 422)


@contextmanager
def refusing_server() -> Iterator[tuple[str, list[bool]]]:
    """A server that answers every request with 500; of each, whether it had the secret."""
    asked: list[bool] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append("sk-secret" in str(self.headers))
            self.send_response(500)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as standing:
        Thread(target=standing.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{standing.server_port}/mcp", asked
        standing.shutdown()


def test_a_token_goes_to_its_own_address_only(admin: Served) -> None:
    """Another URL under the same name gets no token that was entered for the one before; the same URL keeps it."""
    with refusing_server() as first, refusing_server() as second:
        sent = []
        for (url, asked), token in ((first, "sk-secret"), (first, None), (second, None)):
            admin.call("PUT", "/api/mcp/far", {"url": url, **({"token": token} if token else {})}, 204)
            asked.clear()
            assert not admin.post("/api/mcp/far/test", {}, 200)["ok"]
            assert asked
            sent.append(set(asked))
    assert sent == [{True}, {True}, {False}]
    assert "sk-secret" not in (admin.data_dir / "keys.json").read_text()


# ---- keys of providers ----


def provider(server: Served, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = server.get("/api/settings")["providers"]
    return next(item for item in found if item["name"] == name)


def test_a_typed_key_keeps_the_address_of_the_environment(start: Start, up: ScriptedModelServer) -> None:
    """A key that is entered while OPENAI_BASE_URL is set goes to that address, which the settings show."""
    server = start(environment={"OPENAI_BASE_URL": up.url})
    assert provider(server, "openai")["base_url"] == up.url
    assert provider(server, "openai")["key_source"] is None
    server.call("PUT", "/api/settings/keys/openai", {"key": "sk-typed"}, 200)
    found = provider(server, "openai")
    assert (found["base_url"], found["key_source"], found["has_key"]) == (up.url, "settings", True)
    _, name = up.play("typed-key", says("Hello!")).split("/", 1)
    assert server.post("/api/models/test", {"model": f"openai/{name}"}, 200)["ok"]
    server.call("DELETE", "/api/settings/keys/openai", None, 204)
    assert provider(server, "openai")["key_source"] is None


def test_a_key_that_the_settings_do_not_hold_is_not_removed_there(start: Start, up: ScriptedModelServer) -> None:
    """Removing a key of the environment says where the key comes from; a typed key is removed and leaves that one."""
    server = start(environment={"OPENAI_BASE_URL": up.url, "OPENAI_API_KEY": "sk-environment"})
    found = provider(server, "openai")
    assert (found["key_source"], found["key_variable"]) == ("environment", "OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in server.call("DELETE", "/api/settings/keys/openai", None, 409)["detail"]
    server.call("PUT", "/api/settings/keys/openai", {"key": "sk-typed"}, 200)
    server.call("DELETE", "/api/settings/keys/openai", None, 204)
    assert provider(server, "openai")["key_source"] == "environment"


@contextmanager
def provider_that_lists(models: list[str] | None) -> Iterator[str]:
    """A server that lists these models, or answers every request with 401."""

    class Listing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"data": [{"id": name} for name in models or ()]}).encode()
            self.send_response(401 if models is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Listing) as standing:
        Thread(target=standing.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{standing.server_port}/v1"
        standing.shutdown()


def test_a_refreshed_list_of_models_is_the_providers(start: Start) -> None:
    """Refreshing asks every provider first: a recent list does not hide that one has changed."""
    listed = ["one"]
    with provider_that_lists(listed) as address:
        server = start(more={"providers": {"work": {"base_url": address}}})
        assert names(server, "/api/models") == ["work/one"]
        listed[:] = ["two"]
        assert names(server, "/api/models") == ["work/one"]
        assert names(server, "/api/models?refresh=true") == ["work/two"]


def names(server: Served, path: str) -> list[str]:
    return [item["id"] for item in server.get(path)["items"] if item["id"].startswith("work/")]


def test_a_key_that_the_provider_rejects_is_not_stored(start: Start) -> None:
    """A wrong key is refused with the provider's reason, and the default model stays what it was."""
    with provider_that_lists(None) as address:
        more = {"providers": {"strict": {"base_url": address}, "other": {"base_url": address, "models": ["m"]}}}
        server = start(more=more)
        before = server.get("/api/models")["default"]
        refused = server.call("PUT", "/api/settings/keys/strict", {"key": "nonsense"}, 422)
        assert refused["field"] == "key"
        assert "rejected the API key" in refused["detail"]
        assert "nonsense" not in str(refused)
        assert provider(server, "strict")["has_key"] is False
        assert server.get("/api/models")["default"] == before


def test_a_key_that_cannot_be_verified_does_not_change_the_default(start: Start, up: ScriptedModelServer) -> None:
    """The key is stored with the reason for the doubt, and the model that answered before stays the default."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    server = start(environment={"OPENAI_BASE_URL": up.url, "ANTHROPIC_BASE_URL": nobody}, more={"providers": {}})
    before = server.get("/api/models")["default"]
    saved = server.call("PUT", "/api/settings/keys/anthropic", {"key": "sk-typed"}, 200)
    assert saved["verified"] is False
    assert "Anthropic" in saved["reason"]
    assert provider(server, "anthropic")["key_source"] == "settings"
    assert server.get("/api/models")["default"] == before
