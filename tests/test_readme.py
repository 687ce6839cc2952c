"""What the README shows is executed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.http.client import Served
from tests.http.conftest import http_nursery, server, start

__all__ = ["http_nursery", "server", "start"]

README = Path(__file__).parent.parent / "README.md"


def python_blocks() -> list[str]:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 2
    return blocks


def test_the_openai_client_of_the_readme_resumes(server: Served) -> None:
    """The first Python block, as a program of its own, leaves a run and gets exactly the rest of it."""
    environ = {**os.environ, "HOLDFAST_URL": server.url}
    command = [sys.executable, "-c", python_blocks()[0]]
    done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [int(number) for number, _ in lines] == list(range(1, len(lines) + 1))
    assert (lines[0][1], lines[-1][1]) == ("response.in_progress", "response.completed")


def test_the_library_example_of_the_readme_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second Python block streams a run to its end and finds it complete."""
    scope: dict[str, Any] = {}
    exec(compile(python_blocks()[1], str(README), "exec"), scope)
    anyio.run(scope["main"], tmp_path / "data")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "1 run.started"
    assert [line.split()[1] for line in printed[1:-1]][-1] == "run.complete"
    assert printed[-1] == "['complete', 'complete']"


def test_the_calls_of_the_readme_work(server: Served) -> None:
    """The shell block runs against a real server: it streams to the end, resumes, reads, steps back and finds."""
    if shutil.which("curl") is None:
        pytest.skip("this machine has no curl")
    (block,) = re.findall(r"```bash\n(.*?)```", README.read_text(), re.DOTALL)
    environ = {"HOLDFAST_URL": server.url, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        check=False,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    streams = done.stdout.split("retry: 1000\n\n")
    assert [streams[1].count(f"id: {n}\n") for n in (1, 2, 3)] == [1, 1, 1]
    assert [streams[2].count(f"id: {n}\n") for n in (1, 2, 3)] == [0, 0, 1]
    assert streams[2].count('"status":"complete"') >= 2
    assert '"head":null' in streams[2]
    assert '"title":"Tides"' in streams[2].splitlines()[-1]
