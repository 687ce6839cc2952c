"""Real server processes with the real crew, and one scripted upstream for all of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.chat.stage import KEY, KEY_NAME, PROVIDER, Stage, stage
from tests.http.client import Served
from tests.nursery import Nursery

Start = Callable[..., Served]


@pytest.fixture(scope="session")
def chat_nursery() -> Iterator[Nursery]:
    with Nursery("tests.chat.server") as nursery:
        yield nursery


@pytest.fixture(scope="session")
def up() -> Iterator[Stage]:
    with stage() as standing:
        yield standing


def settings(up: Stage, more: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Those of a server whose only provider is the upstream; `more` are further tables of the config."""
    provider = {"base_url": up.url, "api_key_env": KEY_NAME, "models": ["default"]}
    tables = {"providers": {PROVIDER: provider}, **(more or {})}
    environment = {KEY_NAME: KEY, **changes.pop("environment", {})}
    return {"more": tables, "environment": environment, **changes}


@pytest.fixture
def start(tmp_path: Path, chat_nursery: Nursery, up: Stage) -> Iterator[Start]:
    """Start a server on the test's directory, once or after the last one has gone."""
    lives: list[Served] = []
    with ExitStack() as started:

        def begin(**changes: Any) -> Served:
            served = Served(chat_nursery, tmp_path / "data", **settings(up, **changes))
            lives.append(started.enter_context(served))
            return lives[-1].ready()

        yield begin
    for served in lives:  # no call may end in an exception that nobody foresaw
        assert "Exception in ASGI application" not in served.complaints, served.complaints


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, chat_nursery: Nursery, up: Stage) -> Iterator[Served]:
    """One server for tests that leave nothing behind which another would notice."""
    with Served(chat_nursery, tmp_path_factory.mktemp("chat") / "data", **settings(up)) as served:
        yield served.ready()
