"""The suites live in the package; their assertions are explained like those of tests."""

import pytest

pytest.register_assert_rewrite("holdfast.testing.contracts")
