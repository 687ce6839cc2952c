"""Settings of a chat and their defaults, over HTTP."""

from typing import Any

import pytest

from tests.engine.test_export_import import from_elsewhere
from tests.http.client import Served, import_lines
from tests.http.conftest import Start

OWN: dict[str, Any] = {
    "temperature": 0.2,
    "top_p": 0.9,
    "max_tokens": 300,
    "reasoning_effort": "low",
    "use_tools": False,
    "memory": "none",
}
NOTHING = {**dict.fromkeys(OWN), "system": None}


def own(session: Any) -> dict[str, Any]:
    return {name: session[name] for name in OWN}


def test_settings_of_a_chat_survive_restart_fork_and_transfer(start: Start) -> None:
    """P1: each field changes alone, beside what else the settings have; a fork and an import have them too."""
    server = start()
    sid = server.session(system="Be brief.", settings={"seed": 7}, **OWN)
    assert own(server.look(sid)) == OWN
    changed = server.call("PATCH", f"/api/sessions/{sid}", {"temperature": None, "max_tokens": 5}, 200)
    assert own(changed) == {**OWN, "temperature": None, "max_tokens": 5}
    assert changed["settings"]["seed"] == 7
    server.events(server.send(sid, [{"say": "x"}])["run"]["id"])
    server.kill()
    server = start()
    assert own(server.look(sid)) == own(changed)
    forked = server.post(f"/api/sessions/{sid}/fork", {"message_id": server.answer(sid)["id"]}, 201)
    exported = server.http.get(f"/api/sessions/{sid}/export").content
    server.call("DELETE", f"/api/sessions/{sid}", expect=204)
    headers = {"Content-Type": "application/x-ndjson"}
    (imported,) = server.http.post("/api/import", content=exported, headers=headers).json()["items"]
    for copy in (forked, server.look(imported["session_id"])):
        assert (own(copy), copy["system"]) == (own(changed), "Be brief.")


def test_defaults_are_kept_and_only_what_is_named_changes(start: Start) -> None:
    """P1: they survive `kill -9`; null clears one."""
    server = start()
    assert server.get("/api/chat-defaults") == NOTHING
    server.call("PATCH", "/api/chat-defaults", {"temperature": 0, "memory": "none"}, 200)
    changed = server.call("PATCH", "/api/chat-defaults", {"system": "Be brief.", "memory": None}, 200)
    assert changed == {**NOTHING, "temperature": 0, "system": "Be brief."}
    server.kill()
    server = start()
    assert server.get("/api/chat-defaults") == changed
    assert server.call("PATCH", "/api/chat-defaults", {"system": None, "temperature": None}, 200) == NOTHING


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 2.5),
        ("temperature", -0.1),
        ("temperature", "hot"),
        ("top_p", 0),
        ("top_p", 1.5),
        ("max_tokens", 0),
        ("max_tokens", 1.5),
        ("max_tokens", 10_000_000),
        ("reasoning_effort", "extreme"),
        ("use_tools", "no"),
        ("temprature", 1),
    ],
)
def test_values_out_of_range_are_refused_by_name(server: Served, name: str, value: Any) -> None:
    """Nothing is stored, and the error names the field."""
    sid = server.session()
    for method, path in (("PATCH", f"/api/sessions/{sid}"), ("POST", "/api/sessions"), ("PATCH", "/api/chat-defaults")):
        assert server.call(method, path, {name: value}, 422)["field"] == name
    assert own(server.look(sid)) == dict.fromkeys(OWN)
    assert server.call("PATCH", "/api/chat-defaults", {"memory": "elephant"}, 422)["field"] == "memory"


@pytest.mark.parametrize(("name", "value"), [("temperature", 99), ("max_tokens", -5), ("use_tools", 3)])
def test_free_form_settings_have_the_same_ranges(server: Served, name: str, value: Any) -> None:
    """Of sessions, runs and comparisons: nothing is stored, and the error names the setting. Null is no value."""
    sid = server.session(settings={name: None, "colour": "blue"})
    settings = {"settings": {name: value}}
    for method, path, body in (
        ("POST", "/api/sessions", settings),
        ("PATCH", f"/api/sessions/{sid}", settings),
        ("POST", f"/api/sessions/{sid}/runs", {"input": "[]", **settings}),
        ("POST", "/api/compare", {"runs": [{"input": "[]", **settings}]}),
    ):
        assert name in server.call(method, path, body, 422)["detail"]
    assert server.look(sid)["settings"] == {name: None, "colour": "blue"}


def test_unusable_imported_values_are_shown_as_not_set(server: Served) -> None:
    """The settings of an imported chat may have any JSON; the chat can be read all the same."""
    sid = server.session(settings={"seed": "unusable"})
    exported = server.http.get(f"/api/sessions/{sid}/export").text
    server.call("DELETE", f"/api/sessions/{sid}", expect=204)
    lines = exported.replace('"seed":"unusable"', '"temperature":"hot","max_tokens":true,"use_tools":3')
    assert lines != exported
    headers = {"Content-Type": "application/x-ndjson"}
    (imported,) = server.http.post("/api/import", content=lines, headers=headers).json()["items"]
    assert own(server.look(imported["session_id"])) == dict.fromkeys(OWN)


def test_importing_again_leaves_the_settings_of_a_person_alone(server: Served) -> None:
    """Of an export that has grown, only the messages are added: settings that were changed, added or reset since the
    first import stay so."""
    sid = server.session(temperature=0.2, top_p=0.9, max_tokens=300)
    server.turn(sid, [{"say": "One."}])
    (first,) = import_lines(server, elsewhere(server, sid))
    changes = {"temperature": 1.5, "top_p": None, "use_tools": False}
    server.call("PATCH", f"/api/sessions/{first['session_id']}", changes, 200)
    server.turn(sid, [{"say": "Two."}])
    (again,) = import_lines(server, elsewhere(server, sid))
    assert (again["session_id"], again["messages"], again["is_new"]) == (first["session_id"], 2, False)
    found = server.look(again["session_id"])
    assert own(found) == {**dict.fromkeys(OWN), **changes, "max_tokens": 300}
    assert server.answer(again["session_id"])["parts"] == [{"type": "text", "text": "Two."}]
    server.turn(sid, [{"say": "Three."}])
    (third,) = import_lines(server, elsewhere(server, sid))
    assert (third["messages"], server.answer(third["session_id"])["parts"][0]["text"]) == (2, "Three.")


def elsewhere(server: Served, sid: str) -> bytes:
    return from_elsewhere(server.http.get(f"/api/sessions/{sid}/export").content)


def test_memory_is_turned_on_for_one_chat_where_the_default_is_off(start: Start) -> None:
    """M7: `default` is the server's provider, whatever the owner's default says."""
    server = start(remembers=True)
    server.call("PATCH", "/api/chat-defaults", {"memory": "none"}, 200)
    private, public = server.session(), server.session(memory="default")
    for sid in (private, public):
        server.turn(sid, "I live in Lisbon.")
    dirty = [server.get(f"/api/sessions/{sid}/memory")["dirty_turns"] for sid in (private, public)]
    assert (dirty, server.look(public)["memory"]) == ([0, 1], "default")
