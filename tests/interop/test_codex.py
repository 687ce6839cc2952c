"""Codex CLI: `codex exec` with Holdfast as its model provider. Commands that the model asks for really run."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.interop.environments import CALL_SECONDS, environ, program
from tests.interop.scripts import refuses
from tests.openai.scripts import calls_function, named, thinks_and_says
from tests.upstream import says

pytestmark = pytest.mark.interop
CONFIG = """
model = "{model}"
model_provider = "holdfast"
check_for_update_on_startup = false

[model_providers.holdfast]
name = "Holdfast"
base_url = "{url}/v1"
env_key = "HOLDFAST_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def run_codex(served: Served, model: str, place: Path, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of `codex exec`, and the events that it printed."""
    home, work = place / "codex-home", place / "work"
    home.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    (home / "config.toml").write_text(CONFIG.format(model=model, url=served.url))
    command = [program("codex", "codex"), "exec", "--json", "--skip-git-repo-check", "-C", str(work)]
    command += ["--dangerously-bypass-approvals-and-sandbox", *arguments]
    done = subprocess.run(
        command,
        env=environ(HOME=str(home), CODEX_HOME=str(home), HOLDFAST_API_KEY="none"),
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=CALL_SECONDS,
    )
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert events, done.stderr
    return done.returncode, events


def texts(events: list[dict[str, Any]]) -> list[str]:
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    return [item["text"] for item in items if item["type"] == "agent_message"]


def test_a_command_runs_and_the_session_resumes(shared: Served, up: ScriptedModelServer, tmp_path: Path) -> None:
    """A command of the model writes a file, its output reaches the model, and a second call resumes the session."""
    arguments = json.dumps({"cmd": "echo high > tide.txt; cat tide.txt"})
    up.play("codex", calls_function(arguments, name="exec_command", thinks="Hm."), says("Done."), says("Again."))
    code, events = run_codex(shared, named("codex"), tmp_path, "Write tide.txt")
    assert (code, texts(events)) == (0, ["Done."]), events
    assert (tmp_path / "work" / "tide.txt").read_text() == "high\n"
    assert "high" in up.asked("codex", 2)["messages"][-1]["content"]
    code, events = run_codex(shared, named("codex"), tmp_path, "resume", "--last", "Again")
    assert (code, texts(events)) == (0, ["Again."]), events
    roles = [message["role"] for message in up.asked("codex", 3)["messages"]]
    assert roles[-4:] == ["assistant", "tool", "assistant", "user"]


def test_a_patch_of_a_known_model(shared: Served, up: ScriptedModelServer, tmp_path: Path) -> None:
    """For models that Codex knows, it sends tools with free text as input: a patch is applied."""
    patch = "*** Begin Patch\n*** Add File: tide.txt\n+high\n*** End Patch\n"
    up.play("gpt-5.5", calls_function(json.dumps({"input": patch}), name="apply_patch"), thinks_and_says("", "Done."))
    code, events = run_codex(shared, "gpt-5.5", tmp_path, "Write tide.txt")
    assert (code, texts(events)) == (0, ["Done."]), events
    assert (tmp_path / "work" / "tide.txt").read_text() == "high\n"
    assert "tide.txt" in up.asked("gpt-5.5", 2)["messages"][-1]["content"]


def test_a_script_of_the_newest_models(shared: Served, up: ScriptedModelServer, tmp_path: Path) -> None:
    """For its newest models Codex sends its tools among the input, in a namespace: a script of the model runs."""
    script = 'text(await tools.exec_command({cmd: "echo high > tide.txt; cat tide.txt"}))'
    name = "functions__exec"
    up.play("gpt-6.1-sol", calls_function(json.dumps({"input": script}), name=name), thinks_and_says("", "Done."))
    code, events = run_codex(shared, "gpt-6.1-sol", tmp_path, "Write tide.txt")
    assert (code, texts(events)) == (0, ["Done."]), events
    assert (tmp_path / "work" / "tide.txt").read_text() == "high\n"
    assert "high" in str(up.asked("gpt-6.1-sol", 2)["messages"][-1]["content"])


def test_a_failing_upstream(shared: Served, up: ScriptedModelServer, tmp_path: Path) -> None:
    """A provider that fails ends `codex exec` with its message."""
    up.play("codex fails", refuses(400))
    code, events = run_codex(shared, named("codex fails"), tmp_path, "Write tide.txt")
    assert code == 1
    assert "says no" in json.dumps(events)
