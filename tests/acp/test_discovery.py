"""Which agent programs are found without a configuration: on the PATH, and among the downloads of npx."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acp.conftest import Program, play
from tests.http.client import Served
from tests.http.conftest import Start

PROGRAMS: Final = {
    "hermes": ["hermes", "acp"],
    "claude": ["claude-agent-acp"],
    "codex": ["codex-acp"],
    "gemini": ["gemini", "--acp"],
    "opencode": ["opencode", "acp"],
    "goose": ["goose", "acp"],
}
"""The names of agents, and the commands that start them."""
PACKAGES: Final = {
    "claude": "@agentclientprotocol/claude-agent-acp",
    "codex": "@agentclientprotocol/codex-acp",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
}

Fake = Callable[[Path], Path]


@pytest.fixture
def fake(program: Program) -> Fake:
    """Puts the scripted program somewhere. It says how it was called in `called.jsonl`."""

    def make(path: Path) -> Path:
        section = program.section()
        path.parent.mkdir(parents=True, exist_ok=True)
        called = f'printf \'["%s","%s"]\\n\' "$0" "$*" >> {program.home}/called.jsonl'
        path.write_text(f"#!/bin/sh\n{called}\nexec {section['command']} {' '.join(section['args'])}\n")
        path.chmod(0o700)
        return path

    return make


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A directory for the PATH with an npx that notes when it is run."""
    npx = tmp_path / "node" / "npx"
    npx.parent.mkdir()
    npx.write_text(f"#!/bin/sh\ntouch {tmp_path}/npx-ran\n")
    npx.chmod(0o700)
    return npx.parent


def agents(served: Served) -> dict[str, Any]:
    return {item["name"]: item for item in served.get("/api/agents")["items"]}


def listed_on_v1(served: Served) -> set[str]:
    return {item["id"].removeprefix("agent:") for item in served.get("/v1/models")["data"]} & set(PROGRAMS)


def test_known_programs_on_the_path_are_agents(start: Start, program: Program, fake: Fake, tmp_path: Path) -> None:
    """The list and `/v1` have each of them and no other, and each is started with its arguments for the protocol."""
    missing = "goose"
    there = {name: command for name, command in PROGRAMS.items() if name != missing}
    paths = {name: fake(tmp_path / "bin" / command) for name, (command, *_) in there.items()}
    served = start(environment={"PATH": f"{tmp_path}/bin"})
    found = agents(served)
    assert {name: found[name]["command"] for name in PROGRAMS if found[name]["available"]} == there
    assert not [name for name in there if found[name]["reason"] or found[name]["editable"]]
    assert listed_on_v1(served) == set(there)
    fake(tmp_path / "bin" / missing)
    assert agents(served)[missing]["available"]  # installed meanwhile
    for name, (command, *arguments) in there.items():
        assert served.post(f"/api/agents/{name}/test")["program"] == "Scripted"
        assert program.lines("called")[-1] == [str(paths[name]), " ".join(arguments)], command
    sid = served.session(agent="codex", title="A person's")
    assert served.turn(sid, play({"say": "Here."}))["parts"][0]["text"] == "Here."


def test_a_file_that_cannot_be_executed_is_no_program(start: Start, tmp_path: Path) -> None:
    """It is listed as missing, as a directory of that name is."""
    (tmp_path / "goose").write_text("#!/bin/sh\n")
    (tmp_path / "gemini").mkdir()
    found = agents(start(environment={"PATH": str(tmp_path)}))
    assert [found[name]["available"] for name in ("goose", "gemini")] == [False, False]


def download(fake: Fake, cache: Path, name: str, place: str = "0123456789abcdef", package: str | None = None) -> Path:
    """What npx leaves when it has downloaded a program."""
    modules = cache / "_npx" / place / "node_modules"
    about = modules / (package or PACKAGES[name]) / "package.json"
    about.parent.mkdir(parents=True)
    about.write_text(json.dumps({"name": package or PACKAGES[name]}))
    (modules / ".package-lock.json").write_text("{}")
    return fake(modules / ".bin" / PROGRAMS[name][0])


def test_programs_that_npx_downloaded_are_agents(
    start: Start, program: Program, fake: Fake, node: Path, tmp_path: Path
) -> None:
    """They are started from npx's cache. npx itself is never run, because it would look for a newer version."""
    paths = {name: download(fake, tmp_path / ".npm", name, place=name) for name in PACKAGES}
    served = start(environment={"PATH": str(node), "HOME": str(tmp_path)})
    found = agents(served)
    for name, path in paths.items():
        facts = [found[name][fact] for fact in ("available", "reason", "npx_command", "command")]
        assert facts == [True, None, None, [str(path), *PROGRAMS[name][1:]]]
    assert listed_on_v1(served) == set(PACKAGES)
    assert served.post("/api/agents/gemini/test")["ok"]
    sid = served.session(agent="gemini", title="A person's")
    assert served.turn(sid, play({"say": "Here."}))["parts"][0]["text"] == "Here."
    assert program.lines("called") == [[str(paths["gemini"]), "--acp"]] * 2
    assert not (tmp_path / "npx-ran").exists()


def test_of_several_downloads_the_newest_is_started(start: Start, fake: Fake, node: Path, tmp_path: Path) -> None:
    """npm's setting says where the cache is; a program on the PATH comes first, and one of another package never."""
    cache, environment = tmp_path / "cache", {"PATH": f"{node}:/usr/bin:/bin", "HOME": "/nowhere"}
    for place, age in (("old", 100), ("new", 10), ("older", 1000)):
        path = download(fake, cache, "gemini", place)
        made = time.time() - age
        os.utime(path.parents[1] / ".package-lock.json", (made, made))
    newest = cache / "_npx" / "new" / "node_modules" / ".bin" / "gemini"
    download(fake, cache, "gemini", "other", package="gemini-of-somebody")
    settings = {**environment, "npm_config_cache": str(cache)}
    served = start(environment=settings)
    assert agents(served)["gemini"]["command"] == [str(newest), "--acp"]
    fake(node / "gemini")
    assert agents(served)["gemini"]["command"] == ["gemini", "--acp"]


@pytest.mark.parametrize("lacks", ["npx", ".package-lock.json", "package.json", "gemini"])
def test_an_incomplete_download_is_not_started(
    start: Start, fake: Fake, node: Path, tmp_path: Path, lacks: str
) -> None:
    """Whatever is missing, the program is, and the list has the command that would download it if npx is there."""
    path = download(fake, tmp_path / ".npm", "gemini")
    for place in (node, path.parents[3]):
        for file in place.rglob(lacks):
            file.unlink()
    served = start(environment={"PATH": str(node), "HOME": str(tmp_path)})
    found = agents(served)["gemini"]
    assert (found["available"], found["npx_command"] is None) == (False, lacks == "npx")
    tested = served.post("/api/agents/gemini/test")
    assert (tested["ok"], "gemini was not found on the PATH" in tested["reason"]) == (False, True)
    sid = served.session(agent="gemini")
    run = served.ended(served.begin(sid, "go"))
    assert (run["status"], run["error"]["code"]) == ("failed", "agent-unavailable")
    assert not (tmp_path / "npx-ran").exists()
