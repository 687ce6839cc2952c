"""Agent programs from npm, below `build/adapters`: `python -m tests.acp.adapters` installs what is missing.

They are installed in a directory of their own, because they are large and change often. Claude Code's adapter asks for
Node 22; with Node 20 it starts too."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from web import build

INSTALLED: Final = Path(__file__).parents[2] / "build" / "adapters"
PACKAGES: Final[Mapping[str, str]] = {
    "@agentclientprotocol/claude-agent-acp": "0.100.0",
    "@agentclientprotocol/codex-acp": "2.6.0",
    "@google/gemini-cli": "0.61.0",
    "opencode-ai": "1.18.33",
}
_NOTE: Final = INSTALLED / ".installed"
NPX_CACHE: Final = INSTALLED.parent / "npx"
"""A cache of npm into which npx has downloaded `NPX_PACKAGE`, as for a person who has used it."""
NPX_PACKAGE: Final = "@google/gemini-cli"


def command(name: str) -> str:
    """The path of a program. Without it the test fails, because a program that was not started was not tested."""
    path = INSTALLED / "node_modules" / ".bin" / name
    if not path.exists():
        pytest.fail(f"NOT TESTED: {name} is not installed; `make test-agents` installs it", pytrace=False)
    return str(path)


def node_path() -> str:
    """The directory of Node, for the PATH of the programs."""
    found = build.node_directory()
    assert found is not None
    return str(found)


def main() -> int:
    wanted = json.dumps({"name": "adapters", "private": True, "dependencies": PACKAGES}, indent=2)
    if _NOTE.exists() and _NOTE.read_text() == wanted:
        _run_npx()
        return 0
    print("Installing", ", ".join(f"{name} {version}" for name, version in PACKAGES.items()), flush=True)
    INSTALLED.mkdir(parents=True, exist_ok=True)
    (INSTALLED / "package.json").write_text(wanted)
    try:
        build.install_packages(INSTALLED)
    except build.BuildError as error:
        print(f"*** NOT TESTED: the adapters could not be installed: {error}", file=sys.stderr)
        return 0
    _NOTE.write_text(wanted)
    _run_npx()
    return 0


def _run_npx() -> None:
    npx = shutil.which("npx", path=node_path())
    if npx is None or (NPX_CACHE / "_npx").exists():
        return
    environment = {
        **os.environ,
        "PATH": f"{node_path()}{os.pathsep}{os.environ['PATH']}",
        "npm_config_cache": str(NPX_CACHE),
    }
    command = [npx, "--yes", f"{NPX_PACKAGE}@{PACKAGES[NPX_PACKAGE]}", "--version"]
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False, timeout=900)


if __name__ == "__main__":
    sys.exit(main())
