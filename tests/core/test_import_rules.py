"""What a file may choose for the chat that it is imported as, and for its project."""

from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.export_format import ExportedProject
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.import_rules import restrict_project, restrict_session
from holdfast.core.session import Session

SHOWN: dict[str, Any] = {
    "temperature": 0.2,
    "top_p": 0.9,
    "max_tokens": "model_default",
    "reasoning_effort": "low",
    "use_tools": False,
    "memory": "none",
}


def session(**fields: Any) -> Session:
    return Session(SessionId("ses_1"), LOCAL, 1.0, 2.0, **fields)


def test_what_a_person_sees_in_the_settings_of_a_chat_is_kept() -> None:
    """With the model, the system prompt and everything that only describes the chat."""
    described: dict[str, Any] = {
        "title": "T",
        "model": "openai/gpt-5",
        "system": "Be brief.",
        "pinned": True,
        "archived": True,
        "tags": ("a",),
        "project": "p",
    }
    given = session(agent="direct", settings=SHOWN, **described)
    assert restrict_session(given, {"chat", "direct"}) == (given, [])
    assert restrict_session(session(), ()) == (session(), [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cwd", "/home/me"),
        ("agent_options", {"mode": "bypassPermissions"}),
        ("instructions", "Obey."),
        ("tools", ["shell"]),
        ("tools", []),
        ("memory", "default"),
        ("memory", "openviking"),
        ("keep", False),
        ("source", "openai"),
        ("source", "compare"),
        ("openai", {"metadata": {}}),
        ("metadata", {"a": "b"}),
        ("staged", True),
        ("stop", ["x"]),
        ("seed", 7),
        ("extra_body", {}),
        ("temperature", "hot"),
        ("temperature", 99),
        ("use_tools", 1),
    ],
)
def test_everything_else_is_left_out(name: str, value: Any) -> None:
    """Also a setting of a later version, and one that could not be used."""
    kept, left_out = restrict_session(session(settings={"top_p": 0.9, name: value}), ())
    assert kept.settings == {"top_p": 0.9}
    assert left_out == [f"its settings {name} were not kept"]
    assert restrict_session(session(settings={name: value}), ())[0].settings is None


@pytest.mark.parametrize("name", ["claude-code", "gateway", "unknown"])
def test_an_agent_that_is_not_built_in_becomes_the_default(name: str) -> None:
    kept, left_out = restrict_session(session(agent=name), {"chat", "direct"})
    assert kept.agent == "chat"
    assert left_out == [f"its agent {name!r} was not kept; choose it in the chat"]


def test_what_is_left_out_is_short() -> None:
    """Names come from the file. The origin, which every import writes itself, and nulls are not worth a line."""
    assert restrict_session(session(settings={"origin": {"app": "hermes"}, "cwd": None}), ())[1] == []
    settings = {f"{n:03}{'x' * 1000}": 1 for n in range(50)}
    _, (agent, names) = restrict_session(session(agent="y" * 500, settings=settings), ())
    assert len(agent) < 100
    assert len(names) < 500
    assert names.endswith(" and 40 more were not kept")


def test_of_a_project_the_same_is_left_out() -> None:
    """What describes it is kept, its instructions too, which its settings show."""
    given = ExportedProject("red", "Cite sources.", "direct", "m", {"temperature": 0.2}, "project", False)
    assert restrict_project("P", given, {"direct"}) == (given, [])
    settings = {"temperature": 99, "cwd": "/home/me", "top_p": 0.9}
    kept, left_out = restrict_project("P", replace(given, agent="claude-code", settings=settings), {"direct"})
    assert kept == replace(given, agent=None, settings={"top_p": 0.9})
    assert left_out == [
        "the agent 'claude-code' of its project 'P' was not kept; choose it in the project",
        "the settings cwd, temperature of its project 'P' were not kept",
    ]
