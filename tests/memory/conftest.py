"""The same storages and event loops as the engine's tests."""

from tests.engine.conftest import empty_directory, memory, pytest_generate_tests, sqlite, virtual, world

__all__ = ["empty_directory", "memory", "pytest_generate_tests", "sqlite", "virtual", "world"]
