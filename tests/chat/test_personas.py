"""What turns are given of their persona, with the real agent: instructions, model and tools."""

from typing import Any

from tests.chat.model_server import ScriptedModelServer
from tests.chat.test_projects import project, system_of
from tests.http.client import Served
from tests.http.conftest import Start
from tests.upstream import Hang, Head, PauseAt, delta, says, sse


def persona(server: Served, name: str, **fields: Any) -> str:
    return str(server.post("/api/personas", {"name": name, **fields}, 201)["id"])


def test_a_persona_stands_between_the_project_and_the_chat(start: Start, up: ScriptedModelServer) -> None:
    """Its model answers; its instructions and tools win over the project's, and the chat's own over both. A client of
    an API gets what it asked for."""
    server = start()
    model = up.play("persona", *[says("Fine.")] * 5)
    project(server, "Desk", instructions="Of the project.", temperature=0.5, use_tools=True)
    pid = persona(server, "Pilot", instructions="Of the persona.", model=model, use_tools=False)
    sid = server.session(title="A person's", project="Desk", persona=pid)
    server.turn(sid, "One")
    sent = up.asked("persona")
    assert "Of the persona." in system_of(sent)
    assert "Of the project." not in system_of(sent)
    assert (sent["temperature"], sent.get("tools")) == (0.5, None)
    server.call("PATCH", f"/api/sessions/{sid}", {"system": "Own.", "use_tools": True}, 200)
    server.turn(sid, "Two")
    sent = up.asked("persona", 2)
    assert "Of the persona." not in system_of(sent)
    assert "Own." in system_of(sent)
    assert sent["tools"]
    server.call("PATCH", f"/api/sessions/{sid}", {"system": None, "use_tools": None}, 200)
    server.call("DELETE", f"/api/personas/{pid}", expect=204)
    server.turn(sid, "Three")
    sent = up.asked("persona", 3)
    assert "Of the project." in system_of(sent)
    assert sent["tools"]
    other = persona(server, "Other", instructions="Of the persona.")
    api = server.session(persona=other, model=model, settings={"source": "openai"})
    server.turn(api, "Four")
    assert "Of the persona." not in system_of(up.asked("persona", 4))


def test_a_turn_has_the_persona_of_when_it_was_accepted(start: Start, up: ScriptedModelServer) -> None:
    """A1: a change while it waits in the queue does not reach it, nor does a kill."""
    server = start()
    busy = [Head(), *sse(delta(content="One, ")), PauseAt("busy"), Hang()]
    model = up.play("waits", busy, says("Second."))
    pid = persona(server, "Pilot", instructions="Then.", model=model)
    sid = server.session(title="A person's", persona=pid)
    server.begin(sid, "One")
    up.reached("busy")
    rid = server.begin(sid, "Two")
    server.call("PATCH", f"/api/personas/{pid}", {"instructions": "Now.", "name": "Captain"}, 200)
    server.kill()
    server = start()
    server.ended(rid)
    assert "Then." in system_of(up.asked("waits", 2))
    assert server.answer(sid)["persona"]["name"] == "Pilot"
