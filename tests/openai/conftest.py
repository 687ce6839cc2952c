"""Real server processes with the real agents, a scripted upstream, and the official client."""

from collections.abc import Iterator

import pytest
from openai import OpenAI

from tests.chat.conftest import chat_forker, shared, start, up
from tests.http.client import Served
from tests.http.streams import GUARD

__all__ = ["chat_forker", "shared", "start", "up"]


def client_of(served: Served, **how: object) -> OpenAI:
    return OpenAI(base_url=f"{served.url}/v1", api_key="none", timeout=GUARD, max_retries=0, **how)  # type: ignore[arg-type]


@pytest.fixture
def client(shared: Served) -> Iterator[OpenAI]:
    with client_of(shared) as client:
        yield client
