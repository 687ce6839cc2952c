"""Clients from the npm registry, run by the Node that builds the web app. Their tests are skipped, with the reason,
where the clients cannot be installed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.http.client import Served
from web import build

HERE: Final = Path(__file__).parent / "node"
_NOTE: Final = HERE / "node_modules" / ".holdfast"


def fetch() -> str | None:
    """Install the packages; the reason if that fails. Several processes may call it at once."""
    wanted = (HERE / "package.json").read_text() + (HERE / "package-lock.json").read_text()
    if _NOTE.exists() and _NOTE.read_text() == wanted:
        return None
    try:
        build.install_packages(HERE)
    except build.BuildError as error:
        return f"SKIPPED: the Node clients cannot be installed: {error}"
    _NOTE.write_text(wanted)
    return None


def run(served: Served, script: str, scenario: str, **argument: Any) -> Any:
    """The JSON value that the scenario printed."""
    node = build.node_directory()
    if node is None:
        pytest.skip("SKIPPED: this machine has no Node 20 or newer")
    environ = {**os.environ, "HOLDFAST_URL": f"{served.url}/v1", "NODE_NO_WARNINGS": "1"}
    command = [str(node / "node"), str(HERE / script), scenario, json.dumps(argument)]
    done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main() -> int:
    problem = fetch()
    if problem is not None:
        print(f"\n{problem}\n", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
