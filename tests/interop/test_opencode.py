"""opencode: `opencode run` with Holdfast as a custom provider. Commands that the model asks for really run."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.interop.environments import CALL_SECONDS, environ, program
from tests.interop.scripts import refuses
from tests.openai.scripts import calls_function, named
from tests.upstream import says

pytestmark = pytest.mark.interop


def run_opencode(served: Served, model: str, place: Path, prompt: str) -> tuple[list[dict[str, Any]], str]:
    """The events that `opencode run` printed, and its other output."""
    home, work = place / "home", place / "work"
    home.mkdir()
    work.mkdir()
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Holdfast",
        "options": {"baseURL": f"{served.url}/v1", "apiKey": "none"},
        "models": {named(model): {"name": model}, named("default"): {"name": "small"}},
    }
    config = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"holdfast": provider},
        "small_model": f"holdfast/{named('default')}",  # writes the titles
    }
    (work / "opencode.json").write_text(json.dumps(config))
    done = subprocess.run(
        [program("opencode", "opencode"), "run", "--format", "json", "-m", f"holdfast/{named(model)}", prompt],
        cwd=work,
        env=environ(HOME=str(home), OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_LSP_DOWNLOAD="1"),
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=CALL_SECONDS,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.stdout + done.stderr


def test_a_command_runs(shared: Served, up: ScriptedModelServer, tmp_path: Path) -> None:
    """A command of the model writes a file, and its output reaches the model."""
    arguments = json.dumps({"command": "echo high > tide.txt; cat tide.txt", "description": "Writes a file"})
    up.play("opencode", calls_function(arguments, name="bash"), says("Done."))
    events, output = run_opencode(shared, "opencode", tmp_path, "Write tide.txt")
    assert (tmp_path / "work" / "tide.txt").read_text() == "high\n", output
    assert [event["part"]["text"] for event in events if event["type"] == "text"] == ["Done."], output
    assert "high" in up.asked("opencode", 2)["messages"][-1]["content"]


def test_a_failing_upstream(shared: Served, up: ScriptedModelServer, tmp_path: Path) -> None:
    """A provider that fails is reported with its message and status."""
    up.play("opencode fails", refuses(400))
    events, output = run_opencode(shared, "opencode fails", tmp_path, "Write tide.txt")
    (error,) = [event["error"] for event in events if event["type"] == "error"]
    assert "says no" in json.dumps(error), output
    assert error["data"]["statusCode"] == 400
