"""Executes the examples of the documentation, and checks that its reference is complete."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from holdfast.app.agent_programs import agent_programs
from holdfast.config import (
    SECTIONS,
    AgentSection,
    Config,
    McpSection,
    MemorySection,
    ModelsSection,
    ProviderSection,
    ShellSection,
)
from holdfast.server.app import native_endpoints
from tests.fork_server import ForkServer, ServerForker
from tests.http.client import Served
from tests.http.conftest import fresh as server
from tests.http.conftest import http_forker, start

__all__ = ["http_forker", "server", "start"]

DOCS = Path(__file__).parents[1] / "docs"
TUTORIAL = DOCS / "tutorial.md"
LIBRARY = DOCS / "how-to" / "library.md"


def example(page: Path, language: str) -> str:
    """The only block of this language on the page."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)
    return str(block)


def test_openai_client_of_the_tutorial_resumes(server: Served) -> None:
    """The Python example drops the stream of a run and receives exactly the rest of it."""
    environ = {**os.environ, "HOLDFAST_URL": server.url}
    command = [sys.executable, "-c", example(TUTORIAL, "python")]
    done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True)
    assert done.stderr == ""
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [int(number) for number, _ in lines] == list(range(1, len(lines) + 1))
    assert (lines[0][1], lines[-1][1]) == ("response.in_progress", "response.completed")


def test_library_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The library example streams a run to its end and finds it complete."""
    scope: dict[str, Any] = {}
    exec(compile(example(LIBRARY, "python"), str(LIBRARY), "exec"), scope)
    anyio.run(scope["main"], tmp_path / "data")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "1 run.started"
    assert [line.split()[1] for line in printed[1:-1]][-1] == "run.complete"
    assert printed[-1] == "['complete', 'complete']"


def test_calls_of_the_tutorial_work(server: Served) -> None:
    """The shell example streams to the end, resumes, reads, undoes and searches on a real server."""
    if shutil.which("curl") is None:
        pytest.skip("this machine has no curl")
    environ = {"HOLDFAST_URL": server.url, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", example(TUTORIAL, "bash")],
        check=False,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    streams = done.stdout.split("retry: 1000\n\n")
    assert [streams[1].count(f"id: {n}\n") for n in (1, 2, 3)] == [1, 1, 1]
    assert [streams[2].count(f"id: {n}\n") for n in (1, 2, 3)] == [0, 0, 1]
    assert streams[2].count('"status":"complete"') >= 2
    assert '"head":null' in streams[2]
    assert '"title":"Tides"' in streams[2].splitlines()[-1]


def test_reference_lists_every_setting() -> None:
    """Each setting, section and key of `holdfast.toml` is in the configuration reference."""
    page = (DOCS / "reference" / "configuration.md").read_text()
    sections: list[type[BaseModel]] = [ProviderSection, McpSection, AgentSection, ModelsSection, MemorySection]
    sections.append(ShellSection)
    keys = {name for section in sections for name in section.model_fields}
    names = (set(Config.model_fields) - set(SECTIONS)) | keys
    assert [name for name in sorted(names) if not re.search(rf"`(\[[a-z.]+\] )?{name}`|\[memory\.{name}\]", page)] == []
    assert [name for name in SECTIONS if f"[{name}]" not in page and f"[{name}." not in page] == []


def test_reference_lists_every_call() -> None:
    """Each path of the native API is in the HTTP reference, in full or as the last part of a row that shares it."""
    page = (DOCS / "reference" / "http-api.md").read_text()
    paths = {endpoint.path for endpoint in native_endpoints()}
    assert [path for path in sorted(paths) if path not in page and f"`/{path.rpartition('/')[2]}`" not in page] == []


def test_agents_of_the_guide_are_valid(tmp_path: Path) -> None:
    """The configuration in the guide about other agents is accepted, and known names keep their defaults."""
    page = DOCS / "how-to" / "agents.md"
    programs = agent_programs(Config(data_dir=tmp_path, **tomllib.loads(example(page, "toml"))))
    assert (programs["hermes"].command, programs["hermes"].args) == ("hermes", ("acp",))
    assert programs["hermes"].env == {"HERMES_HOME": "/srv/hermes"}
    assert (programs["mine"].args, programs["mine"].answer_within) == (("--acp",), 60)
    assert "hermes-gateway" not in programs  # which is no program


def test_calls_of_the_agents_guide_work(tmp_path: Path, fork_server: ForkServer) -> None:
    """The shell example tests a program in Hermes' place, lists what it offers and starts a chat in a directory."""
    if shutil.which("curl") is None:
        pytest.skip("this machine has no curl")
    modes = {"currentModeId": "ask", "availableModes": [{"id": name, "name": name} for name in ("ask", "accept_edits")]}
    (tmp_path / "offers").write_text(json.dumps({"modes": modes}))
    section = {"command": sys.executable, "args": ["-m", "tests.acp.scripted_program", str(tmp_path)]}
    agents = {"hermes": {**section, "env": {"PYTHONPATH": str(DOCS.parent)}}}
    text = example(DOCS / "how-to" / "agents.md", "bash").replace("~/project", str(tmp_path))
    forker = ServerForker(fork_server, "tests.chat.server")
    settings = {"agents": agents, "agent_directories": [str(tmp_path)], "environment": {}}
    with Served(forker, tmp_path / "data", **settings) as served:
        environ = {"HOLDFAST_URL": served.ready().url, "PATH": os.environ["PATH"]}
        command = ["bash", "-euo", "pipefail", "-c", text]
        done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    tested, offered, directories, session = (
        json.loads(part) for part in done.stdout.replace("}{", "}\n{").splitlines()
    )
    assert (tested["ok"], tested["login_required"]) == (True, False)
    assert offered["options"][0]["default"] == "ask"
    assert directories["allowed"] == [str(tmp_path)]
    assert (session["cwd"], session["agent_options"]) == (str(tmp_path), {"mode": "accept_edits"})


def test_commands_of_the_agents_guide_work(tmp_path: Path) -> None:
    """`agents list` and `agents test` of the guide say what is available, here a scripted program in Hermes' place."""
    program = Path(__file__).parent / "acp" / "hostile_program.py"
    section = {"command": sys.executable, "args": ["-I", "-S", str(program), "well"]}
    (tmp_path / "holdfast.toml").write_text("[agents.hermes]\n" + "".join(f"{k} = {v!r}\n" for k, v in section.items()))
    commands = example(DOCS / "how-to" / "agents.md", "sh").split("\n")
    said = []
    for command in filter(None, commands):
        words = [sys.executable, "-m", *command.split(), "--data-dir", str(tmp_path)]
        done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=100)
        said.append(done.stdout + done.stderr)
    assert "hermes" in said[0]
    assert "goose was not found" in " ".join(said[0].split())
    assert "answered after" in said[1]
