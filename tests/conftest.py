"""Fixtures every test can rely on."""

import pytest

pytest.register_assert_rewrite("holdfast.testing.contracts")  # suites that live in the package


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of `@pytest.mark.anyio` tests; parametrize a test over this name to choose another."""
    return "asyncio"
