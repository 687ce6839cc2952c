"""Clients from the npm registry, run by the Node that the web app is built with. Where they cannot be had, the tests
that need them are skipped, and say so."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.http.client import Served
from tests.http.streams import GUARD
from web import build

HERE: Final = Path(__file__).parent / "node"
_NOTE: Final = HERE / "node_modules" / ".holdfast"


def fetch() -> str | None:
    """Make sure of the packages; a sentence if they cannot be had. Safe to call from several processes."""
    wanted = (HERE / "package.json").read_text() + (HERE / "package-lock.json").read_text()
    if _NOTE.exists() and _NOTE.read_text() == wanted:
        return None
    try:
        build.fetch_packages(HERE)
    except build.CannotBuild as error:
        return f"SKIPPED: the Node clients cannot be had here: {error}"
    _NOTE.write_text(wanted)
    return None


def run(served: Served, script: str, scenario: str, **argument: Any) -> Any:
    """What the scenario printed."""
    node = build.node_directory()
    if node is None:
        pytest.skip("SKIPPED: no Node 20 or newer on this machine, so no client of Node's was tried")
    environ = {**os.environ, "HOLDFAST_URL": f"{served.url}/v1", "NODE_NO_WARNINGS": "1"}
    command = [str(node / "node"), str(HERE / script), scenario, json.dumps(argument)]
    done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True, timeout=2 * GUARD)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main() -> int:
    told = fetch()
    if told is not None:
        print(f"\n{told}\n", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
