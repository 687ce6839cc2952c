"""The programs of other people that the tests in this package run, each group in an environment of its own below
`build/interop`: `python -m tests.interop.environments` installs what is missing.

A group that cannot be installed makes the tests that need it fail, with the reason."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from tests.http.client import Served
from web import build

ROOT: Final = Path(__file__).parents[2]
INSTALLED: Final = ROOT / "build" / "interop"
_MINUTES: Final = 15
CALL_SECONDS: Final = 100.0
"""Seconds after which a program that has not ended has failed."""
_RESULT: Final = "=> "
"""Begins the line with the outcome of a scenario; libraries print lines of their own."""

PACKAGES: Final[Mapping[str, tuple[Literal["python", "node"], Mapping[str, str]]]] = {
    "openai": ("python", {"openai": "3.51.0", "openai-agents": "0.24.0"}),
    "langchain": ("python", {"langchain": "1.4.7", "langchain-openai": "1.7.3", "langchain-anthropic": "1.7.7"}),
    "pydantic-ai": ("python", {"pydantic-ai-slim[openai,anthropic,mcp]": "2.66.0"}),
    "litellm": ("python", {"litellm[proxy]": "1.106.2"}),
    "anthropic": ("python", {"anthropic": "2.9.0"}),
    "mcp-python": ("python", {"mcp-server-time": "2026.10.19", "mcp-server-git": "2026.10.19"}),
    "openai-node": ("node", {"openai": "7.55.0", "zod": "4.6.7"}),
    # `ai` 7 and `@ai-sdk/*` 4 need Node 22.
    "ai-sdk": (
        "node",
        {
            "ai": "6.0.326",
            "@ai-sdk/openai": "3.0.139",
            "@ai-sdk/openai-compatible": "2.0.87",
            "@ai-sdk/anthropic": "3.0.138",
            "zod": "4.6.7",
        },
    ),
    "anthropic-node": ("node", {"@anthropic-ai/sdk": "1.9.0"}),
    "codex": ("node", {"@openai/codex": "0.169.0"}),
    "opencode": ("node", {"opencode-ai": "1.18.33"}),
    "mcp-node": (
        "node",
        {
            "@modelcontextprotocol/server-filesystem": "2026.8.31",
            "@modelcontextprotocol/server-memory": "2026.8.31",
            "@modelcontextprotocol/server-everything": "2026.8.31",
        },
    ),
}
CLIENTS: Final = Path(__file__).parent / "clients"
"""Programs that use the libraries as their documentation says."""


class NotInstalledError(Exception):
    """A group could not be installed; the message says why."""


def directory(group: str) -> Path:
    """The environment of a group. Without it the test fails, because a program that was not tried was not tested."""
    failed = INSTALLED / f"{group}.failed"
    if failed.exists() or not _is_current(group):
        reason = failed.read_text() if failed.exists() else "`make test-interop` installs it"
        pytest.fail(f"NOT TESTED: {group} is not installed: {reason}", pytrace=False)
    return INSTALLED / group


def program(group: str, name: str) -> str:
    """The path of a program of a group."""
    kind, _ = PACKAGES[group]
    return str(directory(group) / ("bin" if kind == "python" else "node_modules/.bin") / name)


def node() -> Path:
    """The directory of Node, for the PATH of programs that need it."""
    found = build.node_directory()
    assert found is not None
    return found


class ClientProcess:
    """A program of `clients` in a process of its own, which does one scenario after another: starting some of these
    libraries takes seconds."""

    def __init__(self, group: str, script: str) -> None:
        path, interpreter = CLIENTS / script, program(group, "python")
        if path.suffix == ".mjs":  # Node looks for packages beside the script
            interpreter = str(node() / "node")
            path = Path(shutil.copy(path, directory(group)))
            shutil.copy(CLIENTS / "scenarios.mjs", directory(group))
        command = [interpreter, str(path)]
        self._process = subprocess.Popen(
            command, env=environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def __enter__(self) -> "ClientProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, scenario: str, served: Served, **arguments: Any) -> Any:
        """The JSON value that the scenario returned. The time limit of the test guards it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"scenario": scenario, "arguments": {"url": f"{served.url}/v1", **arguments}}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        printed: list[str] = []
        for line in self._process.stdout:
            if line.startswith(_RESULT):
                outcome = json.loads(line.removeprefix(_RESULT))
                assert "raised" not in outcome, f"{scenario} raised: {outcome['raised']}"
                return outcome["returned"]
            printed.append(line)
        raise AssertionError(f"{scenario}: the client ended. {''.join(printed[-40:])}")


def environ(**more: str) -> dict[str, str]:
    """An environment without the settings of whoever runs the tests: keys, addresses, proxies, Python paths."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    kept["PATH"] = f"{node()}{os.pathsep}{kept['PATH']}"
    # Nothing listens on port 9: calls home fail at once, and only a server on this machine is reached.
    away = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
    return {**kept, **away, "NODE_NO_WARNINGS": "1", **more}


def _is_current(group: str) -> bool:
    note = INSTALLED / group / ".installed"
    return note.exists() and note.read_text() == _wanted(group)


def _wanted(group: str) -> str:
    return json.dumps(PACKAGES[group][1], indent=2)


def _install(group: str) -> None:
    kind, packages = PACKAGES[group]
    place = INSTALLED / group
    place.mkdir(parents=True, exist_ok=True)
    if kind == "node":
        described = {"name": f"interop-{group}", "private": True, "type": "module", "dependencies": packages}
        (place / "package.json").write_text(json.dumps(described))
        try:
            build.install_packages(place)
        except build.BuildError as error:
            raise NotInstalledError(str(error)) from error
    else:
        _run([sys.executable, "-m", "venv", "--clear", str(place)])
        specifiers = [f"{name}=={version}" for name, version in packages.items()]
        _run([str(place / "bin" / "python"), "-m", "pip", "install", "-q", *specifiers])
    (place / ".installed").write_text(_wanted(group))


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_MINUTES * 60)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotInstalledError(str(error)) from error
    if done.returncode != 0:
        raise NotInstalledError("\n".join(done.stderr.strip().splitlines()[-10:]))


def main() -> int:
    """Install what is missing. A failure is noted for the tests, which report it; the others are still tried."""
    for group, (_, packages) in PACKAGES.items():
        failed = INSTALLED / f"{group}.failed"
        failed.unlink(missing_ok=True)
        if _is_current(group):
            continue
        print(f"Installing {', '.join(f'{name} {version}' for name, version in packages.items())}", flush=True)
        try:
            _install(group)
        except NotInstalledError as error:
            failed.write_text(str(error))
            print(f"*** NOT TESTED: {group} could not be installed: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
