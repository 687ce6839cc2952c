"""Real server processes with the real agents and tools, and one scripted upstream for all of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.model_server import KEY, KEY_NAME, PROVIDER, ScriptedModelServer, serve_model
from tests.fork_server import ForkServer, ServerForker
from tests.http.client import Served
from tests.http.conftest import Start, starting


@pytest.fixture(scope="session")
def chat_forker(fork_server: ForkServer) -> ServerForker:
    return ServerForker(fork_server, "tests.chat.server")


@pytest.fixture(scope="session")
def up() -> Iterator[ScriptedModelServer]:
    with serve_model() as standing:
        yield standing


def settings(up: ScriptedModelServer, more: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Those of a server whose only provider is the upstream; `more` are further tables of the config."""
    provider = {"base_url": up.url, "api_key_env": KEY_NAME, "models": ["default"]}
    tables = {"providers": {PROVIDER: provider}, **(more or {})}
    environment = {KEY_NAME: KEY, **changes.pop("environment", {})}
    return {**tables, "environment": environment, **changes}


@pytest.fixture
def start(tmp_path: Path, chat_forker: ServerForker, up: ScriptedModelServer) -> Iterator[Start]:
    """Start a server on the test's directory, once or after the last one has gone."""
    with starting(lambda **changes: Served(chat_forker, tmp_path / "data", **settings(up, **changes))) as begin:
        yield begin


@pytest.fixture(scope="session")
def shared(
    tmp_path_factory: pytest.TempPathFactory, chat_forker: ServerForker, up: ScriptedModelServer
) -> Iterator[Served]:
    """One server for tests that leave nothing behind which another would notice."""
    with Served(chat_forker, tmp_path_factory.mktemp("chat") / "data", **settings(up)) as served:
        yield served.ready()
