"""What people read about a program that cannot be used."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.acp.problem_text import error_text
from holdfast.agents.acp.program import AgentProgram


@pytest.mark.parametrize(
    ("message", "data", "text"),
    [
        ("Internal error", None, "Internal error"),
        ("Internal error", {"details": "No key.", "stack": ["a"]}, "Internal error: No key"),
        ("Internal error.", "No key", "Internal error: No key"),
        ("Internal error", {"code": 7, "list": ["a"]}, "Internal error"),
        ("Internal error", ["a"], "Internal error"),
        ("No key.", {"message": "No key"}, "No key"),
        ("x" * 5_000, "y" * 5_000, "x" * 1_000 + ": " + "y" * 1_000),
    ],
)
def test_an_error_is_told_in_words(message: str, data: Any, text: str) -> None:
    """E1: of its data only what is words, and no more than can be read."""
    assert error_text(message, data) == text


def test_a_missing_program_is_told_as_it_was_named(tmp_path: Path) -> None:
    """E1: a name is sought on the PATH, an address is not."""
    file = tmp_path / "agent"
    environment = {"PATH": str(tmp_path)}

    def missing(command: str) -> str | None:
        program = AgentProgram("a", command, install="Install it.")
        return None if program.find(environment) == [command] else program.missing

    assert missing("agent") == "agent was not found on the PATH. Install it."
    assert missing(str(file)) == f"There is no program at {file}."
    file.touch()
    assert missing(str(file)) == f"The program {file} cannot be executed."
    file.chmod(0o700)
    assert (missing(str(file)), missing("agent")) == (None, None)
