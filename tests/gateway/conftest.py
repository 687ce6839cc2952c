"""Real servers in front of a scripted gateway."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.conftest import chat_forker, settings, up
from tests.chat.model_server import ScriptedModelServer
from tests.fork_server import ServerForker
from tests.gateway.scripted_gateway import KEY, ScriptedGateway, scripted_gateway
from tests.http.client import Served
from tests.http.conftest import Start, starting

__all__ = ["chat_forker", "up"]


@pytest.fixture
def gateway() -> Iterator[ScriptedGateway]:
    with scripted_gateway() as found:
        yield found


@pytest.fixture
def start(
    tmp_path: Path, chat_forker: ServerForker, up: ScriptedModelServer, gateway: ScriptedGateway
) -> Iterator[Start]:
    def make(section: dict[str, Any] | None = None, **changes: Any) -> Served:
        agents = {"agents": {"gateway": {"url": gateway.url, "api_key": KEY, **(section or {})}}}
        return Served(chat_forker, tmp_path / "data", **settings(up, more=agents, **changes))

    with starting(make) as begin:
        yield begin


def open_session(served: Served, **fields: Any) -> str:
    return served.session(agent="gateway", title="A person's", **fields)
