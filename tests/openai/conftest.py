"""Real server processes with the real crew, one scripted upstream, and clients that others wrote."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from openai import OpenAI

from tests.chat.conftest import chat_nursery, shared, start, up
from tests.http.client import Served
from tests.http.streams import GUARD

__all__ = ["chat_nursery", "shared", "start", "up"]


def client_of(served: Served, **how: object) -> OpenAI:
    return OpenAI(base_url=f"{served.url}/v1", api_key="none", timeout=GUARD, max_retries=0, **how)  # type: ignore[arg-type]


@pytest.fixture
def client(shared: Served) -> Iterator[OpenAI]:
    with ExitStack() as open_ones:
        yield open_ones.enter_context(client_of(shared))
