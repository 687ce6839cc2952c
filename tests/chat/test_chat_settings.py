"""Which settings of a chat reach the model."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.models.local_model import LOCAL_ID
from tests.chat.model_server import PROVIDER, ScriptedModelServer
from tests.http.client import Served
from tests.upstream import says


@pytest.fixture
def defaults(shared: Served) -> Iterator[Served]:
    """The server, whose defaults are cleared afterwards."""
    yield shared
    names = shared.get("/api/chat-defaults")
    shared.call("PATCH", "/api/chat-defaults", dict.fromkeys(names), 200)


def sent(body: Any) -> tuple[Any, ...]:
    return tuple(body.get(name) for name in ("temperature", "top_p", "max_tokens", "reasoning_effort"))


def test_defaults_reach_the_model_unless_the_chat_has_its_own(defaults: Served, up: ScriptedModelServer) -> None:
    """A change counts from the next turn on, in chats that exist too."""
    server, model = defaults, up.play("settings", says("One."))
    sid = server.session(model=model)
    server.turn(sid, "hello")
    values = {"system": "Answer in Latin.", "temperature": 0.3, "max_tokens": 99, "reasoning_effort": "low"}
    server.call("PATCH", "/api/chat-defaults", values, 200)
    server.turn(sid, "again")
    server.call("PATCH", f"/api/sessions/{sid}", {"temperature": 0, "top_p": 0.5, "system": ""}, 200)
    server.turn(sid, "once more")
    first, second, third = (up.asked("settings", n) for n in (1, 2, 3))
    assert [sent(body) for body in (first, second, third)] == [
        (None, None, None, None),
        (0.3, None, 99, "low"),
        (0, 0.5, 99, "low"),
    ]
    prompts = ["Answer in Latin." in body["messages"][0]["content"] for body in (first, second, third)]
    assert prompts == [False, True, False]


def test_a_chat_without_tools_offers_none(defaults: Served, up: ScriptedModelServer) -> None:
    """The chat decides, else the default; the prompt does not speak of tools either."""
    server, model = defaults, up.play("toolless", says("One."))
    sid = server.session(model=model)
    for fields in ({}, {"use_tools": False}):
        server.call("PATCH", f"/api/sessions/{sid}", fields, 200)
        server.turn(sid, "hello")
    server.call("PATCH", f"/api/sessions/{sid}", {"use_tools": None}, 200)
    server.call("PATCH", "/api/chat-defaults", {"use_tools": False}, 200)
    server.turn(sid, "hello")
    bodies = [up.asked("toolless", n) for n in (1, 2, 3)]
    assert [bool(body.get("tools")) for body in bodies] == [True, False, False]
    assert ["You have tools" in body["messages"][0]["content"] for body in bodies] == [True, False, False]


def test_a_chat_can_leave_out_a_parameter_that_has_a_default(defaults: Served, up: ScriptedModelServer) -> None:
    """Models that reject a parameter can be used all the same; the defaults themselves cannot have this value."""
    server, model = defaults, up.play("picky", says("One."))
    values = {"temperature": 0.3, "top_p": 0.9, "max_tokens": 99, "reasoning_effort": "low"}
    server.call("PATCH", "/api/chat-defaults", values, 200)
    sid = server.session(model=model, temperature="model_default")
    own = dict.fromkeys(("max_tokens", "reasoning_effort"), "model_default")
    assert server.call("PATCH", f"/api/sessions/{sid}", own, 200)["temperature"] == "model_default"
    server.turn(sid, "hello")
    assert sent(up.asked("picky")) == (None, 0.9, None, None)
    server.refused("invalid", "PATCH", "/api/chat-defaults", {"temperature": "model_default"})
    server.refused("invalid", "PATCH", f"/api/sessions/{sid}", {"use_tools": "model_default"})


def test_defaults_stay_out_of_calls_of_api_clients(defaults: Served, up: ScriptedModelServer) -> None:
    """Decision 16: no answer differs silently from what a client of `/v1` asked for."""
    server, model = defaults, up.play("strict", says("One."))
    server.call("PATCH", "/api/chat-defaults", {"temperature": 0.3, "system": "Answer in Latin."}, 200)
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    assert server.http.post("/v1/chat/completions", json=body).status_code == 200
    asked = up.asked("strict")
    assert sent(asked)[0] is None
    assert "Latin" not in str(asked["messages"])


def test_models_say_which_settings_they_take(shared: Served) -> None:
    """What a model ignores can be told before it is asked."""
    models = {item["id"]: set(item["settings"]) for item in shared.get("/api/models")["items"]}
    assert models["demo/scripted"] == set()
    usual = {"temperature", "top_p", "max_tokens", "reasoning_effort"}
    found = [settings for name, settings in models.items() if name.startswith(f"{PROVIDER}/")]
    assert found
    assert all(usual <= settings for settings in found)
    assert "reasoning_effort" not in models[LOCAL_ID]
