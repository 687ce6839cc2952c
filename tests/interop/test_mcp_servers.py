"""The MCP reference servers: time and git (Python); filesystem, memory and everything (Node), the last one over stdio,
streamable HTTP and SSE. A run of the chat agent calls their tools."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer, calls
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until
from tests.interop.environments import environ, program
from tests.openai.scripts import named
from tests.servers import free_port
from tests.upstream import says

pytestmark = pytest.mark.interop


def results(served: Served, up: ScriptedModelServer, model: str, *asked: tuple[str, dict[str, Any]]) -> list[str]:
    """What the model is told about the calls that it makes, one after the other."""
    up.play(model, *(calls((f"call_{n}", name, args)) for n, (name, args) in enumerate(asked)), says("Done."))
    sid = served.session(model=named(model), agent="chat")
    ended = served.ended(served.begin(sid, "Go"))
    assert ended["status"] == "complete", ended
    messages = up.asked(model, len(asked) + 1)["messages"]
    return [json.dumps(message["content"]) for message in messages if message["role"] == "tool"]


def started(start: Start, name: str, **server: Any) -> Served:
    """A Holdfast server with this MCP server in its configuration, whose tools need no approval."""
    if "command" in server:
        server["env"] = environ()
    served = start(more={"mcp": {name: server}, "tools": {f"{name}__*": "allow"}})
    # On a busy machine a program may need longer for its first start than Holdfast waits.
    until(lambda: served.post(f"/api/mcp/{name}/test", {}, 200), lambda tried: tried["ok"])
    return served


def test_time(start: Start, up: ScriptedModelServer) -> None:
    """mcp-server-time converts a time; a wrong zone is an error that the model sees."""
    served = started(start, "time", command=program("mcp-python", "mcp-server-time"))
    zones = {"source_timezone": "Europe/Paris", "target_timezone": "Asia/Tokyo"}
    converted, wrong = results(
        served,
        up,
        "mcp time",
        ("time__convert_time", {**zones, "time": "12:00"}),
        ("time__get_current_time", {"timezone": "Nowhere/None"}),
    )
    assert "T19:00" in converted or "T20:00" in converted
    assert "Nowhere" in wrong


def test_git(start: Start, up: ScriptedModelServer, tmp_path: Path) -> None:
    """mcp-server-git stages a file and commits it."""
    place = tmp_path / "repository"
    place.mkdir()
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    for setting in (("user.name", "Tester"), ("user.email", "tester@example.com")):
        subprocess.run(["git", "-C", str(place), "config", *setting], check=True)
    (place / "tide.txt").write_text("high\n")
    served = started(start, "git", command=program("mcp-python", "mcp-server-git"), args=["--repository", str(place)])
    there = {"repo_path": str(place)}
    status, *_ = results(
        served,
        up,
        "mcp git",
        ("git__git_status", there),
        ("git__git_add", {**there, "files": ["tide.txt"]}),
        ("git__git_commit", {**there, "message": "Note the tide"}),
    )
    assert "tide.txt" in status
    log = subprocess.run(["git", "-C", str(place), "log", "--format=%s"], check=True, capture_output=True, text=True)
    assert log.stdout == "Note the tide\n"


def test_filesystem(start: Start, up: ScriptedModelServer, tmp_path: Path) -> None:
    """server-filesystem writes and reads in its directory, and refuses elsewhere."""
    place = tmp_path / "files"
    place.mkdir()
    served = started(start, "files", command=program("mcp-node", "mcp-server-filesystem"), args=[str(place)])
    path = str(place / "tide.txt")
    _, read, refused = results(
        served,
        up,
        "mcp files",
        ("files__write_file", {"path": path, "content": "high"}),
        ("files__read_text_file", {"path": path}),
        ("files__read_text_file", {"path": "/etc/hostname"}),
    )
    assert (place / "tide.txt").read_text() == "high"
    assert "high" in read
    assert "denied" in refused


def test_memory(start: Start, up: ScriptedModelServer, tmp_path: Path) -> None:
    """server-memory keeps an entity and finds it."""
    command = program("mcp-node", "mcp-server-memory")
    served = start(
        more={
            "mcp": {"kg": {"command": command, "env": environ(MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl"))}},
            "tools": {"kg__*": "allow"},
        }
    )
    entity = {"name": "Brest", "entityType": "harbor", "observations": ["high tide at six"]}
    _, found = results(
        served,
        up,
        "mcp memory",
        ("kg__create_entities", {"entities": [entity]}),
        ("kg__search_nodes", {"query": "Brest"}),
    )
    assert "high tide at six" in found


@contextmanager
def everything(transport: str) -> Iterator[dict[str, Any]]:
    """How Holdfast reaches the server over this transport."""
    command = program("mcp-node", "mcp-server-everything")
    if transport == "stdio":
        yield {"command": command}
        return
    port = free_port()
    process = subprocess.Popen(
        [command, transport], env=environ(PORT=str(port)), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stderr is not None
        next(line for line in process.stderr if str(port) in line)
        yield {"url": f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"}
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("transport", ["stdio", "streamableHttp", "sse"])
def test_everything(transport: str, start: Start, up: ScriptedModelServer) -> None:
    """server-everything: text, structured content, progress, an image, a resource link."""
    with everything(transport) as how:
        served = started(start, "all", **how)
        echo, total, long, weather, _image, links = results(
            served,
            up,
            f"mcp {transport}",
            ("all__echo", {"message": "Ahoy"}),
            ("all__get-sum", {"a": 2, "b": 3}),
            ("all__trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
            ("all__get-structured-content", {"location": "New York"}),
            ("all__get-tiny-image", {}),
            ("all__get-resource-links", {"count": 2}),
        )
        assert "Ahoy" in echo
        assert "5" in total
        assert "completed" in long
        assert "temperature" in weather
        assert "resource" in links


def test_added_over_the_api(start: Start, up: ScriptedModelServer) -> None:
    """A remote server that is added with `PUT /api/mcp` is used at once; its tools ask, because it is not trusted."""
    with everything("streamableHttp") as how:
        served = start()
        served.call("PUT", "/api/mcp/all", {"url": how["url"]}, 204)
        assert "all__echo" in {tool["name"] for tool in served.get("/api/tools")["items"]}
        up.play("mcp added", calls(("c", "all__echo", {"message": "Ahoy"})), says("Done."))
        sid = served.session(model=named("mcp added"), agent="chat")
        rid = served.begin(sid, "Go")
        with served.watch(rid) as stream:
            asked = stream.until("approval.requested")
        served.post(f"/api/runs/{rid}/approvals/{asked.data['approval_id']}", {"decision": "once"})
        assert served.ended(rid)["status"] == "complete"
        assert "Ahoy" in json.dumps(up.asked("mcp added", 2)["messages"][-1])
