"""Real servers that drive the scripted program as a real process."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chat.conftest import chat_forker, settings, up
from tests.chat.model_server import ScriptedModelServer
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import Start, starting
from tests.http.streams import until
from tests.program_forker import Preloaded

__all__ = ["chat_forker", "up"]


@dataclass(frozen=True)
class Program:
    """The scripted program's directory: what it was told, and what it kept."""

    home: Path
    preloaded: Preloaded

    def section(self, **more: Any) -> dict[str, Any]:
        return {"command": self.preloaded.command, "args": [*self.preloaded.arguments, str(self.home)], **more}

    def behave(self, mode: str) -> None:
        (self.home / "mode").write_text(mode)

    def lines(self, name: str) -> list[Any]:
        file = self.home / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def prompts(self) -> list[Any]:
        return self.lines("prompts")

    def reached(self, name: str) -> None:
        until((self.home / name).exists)

    def let(self, name: str) -> None:
        (self.home / name).touch()


@pytest.fixture(scope="package")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preloaded]:
    with Preloaded("tests.acp.scripted_program", tmp_path_factory.mktemp("acp")) as running:
        yield running


@pytest.fixture
def program(tmp_path: Path, preloaded: Preloaded) -> Program:
    home = tmp_path / "program"
    home.mkdir()
    return Program(home, preloaded)


@pytest.fixture
def start(tmp_path: Path, chat_forker: ServerForker, up: ScriptedModelServer, program: Program) -> Iterator[Start]:
    def make(section: dict[str, Any] | None = None, **changes: Any) -> Served:
        agents = {"agents": {"scripted": program.section(**(section or {}))}}
        return Served(chat_forker, tmp_path / "data", **settings(up, more=agents, **changes))

    with starting(make) as begin:
        yield begin


def play(*actions: dict[str, Any]) -> str:
    return "go @@" + json.dumps(actions)


def open_session(served: Served, **fields: Any) -> str:
    return served.session(agent="scripted", title="A person's", **fields)
