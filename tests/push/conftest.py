"""A push service, and a clock for those who send to it."""

from collections.abc import Iterator

import pytest

from tests.push.service import PushServiceServer


@pytest.fixture
def push_service() -> Iterator[PushServiceServer]:
    with PushServiceServer().running() as service:
        yield service
