"""Settings of a chat: which values are usable, and which layer wins."""

from typing import Any

import pytest

from holdfast.core import chat_settings
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.session import Session
from tests.core.values import a_run


def session(**fields: Any) -> Session:
    return Session(SessionId("ses_1"), LOCAL, 0.0, 0.0, **fields)


def test_a_chat_inherits_what_it_has_no_value_for() -> None:
    """The chat's own values win over the defaults, false and zero among them, and an empty prompt means none."""
    defaults = {"chat_defaults": {"temperature": 1.5, "top_p": 0.5, "use_tools": True, "system": "Be brief."}}
    chat = session(settings={"temperature": 0, "use_tools": False, "source": "compare"})
    assert chat_settings.of_session(chat, defaults) == {
        "temperature": 0,
        "top_p": 0.5,
        "use_tools": False,
        "system": "Be brief.",
    }
    assert chat_settings.of_session(session(system=""), defaults)["system"] == ""
    assert chat_settings.of_session(session(), {}) == {}


def test_the_run_wins_over_the_chat_and_the_chat_over_the_defaults() -> None:
    """A value of the chat that is out of range is inherited; names that are no chat settings are passed on."""
    defaults = {"chat_defaults": {"temperature": 0.5, "max_tokens": 100, "top_p": 0.5, "system": "Be brief."}}
    chat = session(settings={"temperature": 99, "max_tokens": -5, "top_p": 0.9, "seed": 1, "system": "?"})
    assert chat_settings.of_run(chat, a_run(), defaults) == {
        "temperature": 0.5,
        "max_tokens": 100,
        "top_p": 0.9,
        "seed": 1,
        "system": "Be brief.",
    }
    own = {"max_tokens": 7, "seed": 2, "top_p": None, "instructions": "Be rude."}
    counts = chat_settings.of_run(chat, a_run(settings=own), defaults)
    assert {name: counts[name] for name in ("max_tokens", "seed", "top_p", "system")} == {
        "max_tokens": 7,
        "seed": 2,
        "top_p": 0.9,
        "system": "Be rude.",
    }


def test_defaults_do_not_reach_chats_of_api_clients() -> None:
    """A client of the OpenAI-compatible API gets what it asked for and nothing besides."""
    defaults = {"chat_defaults": {"temperature": 1.5, "memory": "none", "system": "Be brief."}}
    assert chat_settings.of_session(session(settings={"source": "openai", "top_p": 0.1}), defaults) == {"top_p": 0.1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "hot"),
        ("temperature", True),
        ("temperature", 2.1),
        ("temperature", float("nan")),
        pytest.param("temperature", 10**400, id="temperature-huge"),
        pytest.param("top_p", 10**400, id="top_p-huge"),
        ("top_p", 0),
        ("max_tokens", 0.5),
        ("max_tokens", 10**9),
        ("reasoning_effort", ["high"]),
        ("use_tools", "yes"),
        ("system", 7),
        ("memory", "notes"),
        ("colour", "blue"),
    ],
)
def test_unusable_values_are_left_out(name: str, value: Any) -> None:
    """An import or free-form settings may hold anything; what is out of range is inherited instead."""
    assert chat_settings.read({name: value}, name) == {}
    assert chat_settings.read("nothing", name) == {}
