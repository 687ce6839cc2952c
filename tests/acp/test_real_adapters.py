"""Against the real adapters of Claude Code, Codex, Gemini CLI and opencode, without a key: `make test-agents`."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acp.adapters import NPX_CACHE, NPX_PACKAGE, PACKAGES, command, node_path
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import Start, starting

pytestmark = [pytest.mark.agents, pytest.mark.timeout(180)]

# Name in the settings, program, its arguments, its name in `initialize`, its package
PROGRAMS: Final = {
    "claude": ("claude-agent-acp", [], "Claude Agent", "@agentclientprotocol/claude-agent-acp"),
    "codex": ("codex-acp", [], "Codex", "@agentclientprotocol/codex-acp"),
    "gemini": ("gemini", ["--acp"], "Gemini CLI", "@google/gemini-cli"),
    "opencode": ("opencode", ["acp"], "OpenCode", "opencode-ai"),
}

ASK_FOR_A_LOGIN: Final = ("codex", "gemini")  # before they open a session; the others fail at the first prompt


# Nothing listens on port 9: what a program wants from the internet fails at once.
AWAY: Final = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}


@pytest.fixture
def start(tmp_path: Path, chat_forker: ServerForker) -> Iterator[Start]:
    path = f"{node_path()}{os.pathsep}{os.environ['PATH']}"
    env = {"HOME": str(tmp_path), "PATH": path, **AWAY}

    def make(**changes: Any) -> Served:
        sections = {
            name: {"command": command(program), "args": args, "env": env}
            for name, (program, args, _, _) in PROGRAMS.items()
        }
        return Served(chat_forker, tmp_path / "data", agents=sections, **changes)

    with starting(make) as begin:
        yield begin


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_adapter_says_who_it_is_without_a_key(start: Start, name: str) -> None:
    """X5: the adapter starts and answers `initialize`; without a login the test says what a session lacks."""
    _, _, title, package = PROGRAMS[name]
    tested: Any = start().post(f"/api/agents/{name}/test", timeout=120.0)
    assert tested["ok"], tested
    assert (tested["program"], tested["version"]) == (title, PACKAGES[package])
    assert "load sessions" in tested["capabilities"]
    assert tested["login_required"] == (name in ASK_FOR_A_LOGIN)
    assert (tested["session_problem"] is not None) == tested["login_required"]


def test_what_npx_has_downloaded_is_started_without_a_network(tmp_path: Path, chat_forker: ServerForker) -> None:
    """X5: a real download of npx is an agent that starts, with the version that was downloaded; without it, it is
    missing."""
    if not (NPX_CACHE / "_npx").exists():
        pytest.fail(f"NOT TESTED: npx did not download {NPX_PACKAGE}; `make test-agents` does", pytrace=False)
    path = f"{node_path()}{os.pathsep}/usr/bin{os.pathsep}/bin"

    def look(cache: Path) -> tuple[Any, Any]:
        environment = {"HOME": str(tmp_path), "PATH": path, "npm_config_cache": str(cache), **AWAY}
        with Served(chat_forker, tmp_path / "data", environment=environment) as served:
            (gemini,) = [item for item in served.ready().get("/api/agents")["items"] if item["name"] == "gemini"]
            return gemini, served.post("/api/agents/gemini/test", timeout=120.0)

    gemini, tested = look(tmp_path / "empty")
    assert (gemini["available"], tested["ok"]) == (False, False)
    gemini, tested = look(NPX_CACHE)
    assert (gemini["available"], tested["ok"]) == (True, True), tested
    assert gemini["command"][0].startswith(str(NPX_CACHE))
    assert (tested["program"], tested["version"]) == ("Gemini CLI", PACKAGES[NPX_PACKAGE])
