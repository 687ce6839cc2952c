"""What turns are given of their project, with the real agents: instructions, settings, files and memory."""

import base64
import json
from typing import Any

from tests.chat.model_server import ScriptedModelServer, calls
from tests.chat.questions import asked, decide
from tests.chat.test_context import PDF, PNG, attach
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said
from tests.upstream import says


def project(server: Served, name: str, **fields: Any) -> Any:
    return server.post("/api/projects", {"name": name, **fields}, 201)


def add(server: Served, name: str, file: dict[str, str]) -> Any:
    return server.post(f"/api/projects/{name}/files", {"file_id": file["file_id"]})


def system_of(sent: Any) -> str:
    first = sent["messages"][0]
    return str(first["content"]) if first["role"] == "system" else ""


def test_a_project_stands_between_the_defaults_and_the_chat(start: Start, up: ScriptedModelServer) -> None:
    """The chat's own values win over the project's, and those over the defaults; the chat's model and agent too. A
    client of an API gets what it asked for."""
    server = start()
    model = up.play("layers", *[says("Fine.")] * 5)
    other = up.play("others", says("Fine."))
    server.call("PATCH", "/api/chat-defaults", {"system": "Default.", "temperature": 0.1, "top_p": 0.2}, 200)
    project(server, "Layers", instructions="Of the project.", temperature=0.5, model=model, use_tools=False)
    sid = server.session(title="A person's", project="Layers")
    server.turn(sid, "One")
    sent = up.asked("layers")
    assert "Of the project." in system_of(sent)
    assert "Default." not in system_of(sent)
    assert (sent["temperature"], sent["top_p"], sent.get("tools")) == (0.5, 0.2, None)
    server.call("PATCH", f"/api/sessions/{sid}", {"system": "Own.", "temperature": 0.9, "use_tools": True}, 200)
    server.turn(sid, "Two")
    sent = up.asked("layers", 2)
    assert "Own." in system_of(sent)
    assert (sent["temperature"], bool(sent["tools"])) == (0.9, True)
    server.call("PATCH", f"/api/sessions/{sid}", {"system": None, "model": other}, 200)
    server.turn(sid, "Three")
    assert "Of the project." in system_of(up.asked("others"))
    api = server.session(project="Layers", model=model, settings={"source": "openai"})
    server.turn(api, "Four")
    assert "Of the project." not in system_of(up.asked("layers", 3))


def test_the_files_of_a_project_reach_the_model_of_every_chat(start: Start, up: ScriptedModelServer) -> None:
    """A1: text is in the system prompt, images and documents are with the first message; what is too long is cut and
    the model is told. A chat that leaves the project has them no more, and one that joins it has them."""
    providers = {"seeing": {"kind": "openai", "base_url": up.url, "models": ["looks"]}}
    server = start(more={"providers": providers})
    up.play("looks", *[says("Fine.")] * 4)
    project(server, "Files", model="seeing/looks")
    add(server, "Files", attach(server, "key.txt", "Anna hat den Schlüssel.".encode(), "text/plain"))
    add(server, "Files", attach(server, "a.png", PNG, "image/png"))
    add(server, "Files", attach(server, "c.pdf", PDF, "application/pdf"))
    add(server, "Files", attach(server, "long.txt", b"tide " * 100_000, "text/plain"))
    sid = server.session(title="A person's", project="Files")
    server.turn(sid, "Who has the key?")
    server.turn(sid, "And now?")
    for sent in (up.asked("looks"), up.asked("looks", 2)):
        assert "Anna hat den Schlüssel." in system_of(sent)
        assert "The rest of the file 'long.txt' is not shown" in system_of(sent)
        assert len(system_of(sent)) < 250_000
        image, document, words = sent["messages"][1]["content"]
        assert image["image_url"]["url"] == "data:image/png;base64," + base64.b64encode(PNG).decode()
        assert document["file"]["filename"] == "c.pdf"
        assert words["text"] == "Who has the key?"
    server.call("PATCH", f"/api/sessions/{sid}", {"project": None, "model": "seeing/looks"}, 200)
    server.turn(sid, "Still?")
    assert "Schlüssel" not in json.dumps(up.asked("looks", 3), ensure_ascii=False)
    moved = server.session(title="Moved", model="seeing/looks")
    server.call("PATCH", f"/api/sessions/{moved}", {"project": "Files"}, 200)
    server.turn(moved, "Who?")
    assert "Schlüssel" in system_of(up.asked("looks", 4))


def test_a_run_keeps_what_it_was_given_when_it_was_accepted(start: Start, up: ScriptedModelServer) -> None:
    """X5: killed and continued after the project was changed, the run is shown what it was shown before; the next run
    is shown the project as it is."""
    server = start()
    model = up.play("kept", calls(("c1", "write_file", {"path": "a.txt", "content": "x"})), says("Done."), says("Yes."))
    made = project(server, "Kept", instructions="First version.", model=model)
    file = attach(server, "key.txt", b"Anna has the key.", "text/plain")
    add(server, "Kept", file)
    sid = server.session(title="A person's", project="Kept")
    rid = server.begin(sid, "Go on")
    assert asked(server, rid)["name"] == "write_file"
    server.kill()
    server = start()
    changes = {"instructions": "Second version.", "temperature": 0.7}
    server.call("PATCH", f"/api/projects/{made['id']}", changes, 200)
    server.call("DELETE", f"/api/projects/{made['id']}/files/{file['file_id']}", expect=200)
    decide(server, rid, "once")
    assert server.ended(rid)["status"] == "complete"
    first, second = up.asked("kept"), up.asked("kept", 2)
    assert system_of(first) == system_of(second)
    assert "Anna has the key." in system_of(second)
    assert "temperature" not in second
    server.turn(sid, "Next")
    assert "Second version." in system_of(up.asked("kept", 3))
    assert "Anna has the key." not in system_of(up.asked("kept", 3))


def test_a_memory_of_its_own_stays_in_the_project(start: Start, up: ScriptedModelServer) -> None:
    """M2: facts from a project with its own memory are recalled in its chats alone, and its chats recall no others;
    with shared recall they do. Deleting the project deletes its facts, and no others."""
    server = start(more={"memory": {"extract": "rules"}})
    model = up.play("scoped", *[says("Yes.")] * 8)
    project(server, "Own", memory="project", model=model)
    project(server, "Both", memory="project_and_shared", model=model)

    def remember(text: str, **fields: Any) -> None:
        sid = server.session(title="A person's", model=model, **fields)
        server.turn(sid, text)
        assert server.post(f"/api/sessions/{sid}/memory/commit", {})["committed"] == 1
        assert server.get(f"/api/sessions/{sid}/memory")["provider"] == "notes"

    def recalled(question: str, **fields: Any) -> list[str]:
        parts = server.turn(server.session(title="A person's", model=model, **fields), question)["parts"]
        return [item["text"] for part in parts if part["type"] == "remembered" for item in part["items"]]

    def facts(**params: str) -> list[str]:
        return [item["text"] for item in server.get("/api/memory", params=params)["items"]]

    remember("I live in Lisbon.")
    remember("I live in Porto.", project="Own")
    remember("I live in Faro.", project="Both")
    assert (facts(), facts(project="Own"), facts(project="Both")) == (
        ["Lives in Lisbon."],
        ["Lives in Porto."],
        ["Lives in Faro."],
    )
    assert recalled("Where do I live?") == ["Lives in Lisbon."]
    assert recalled("Where do I live?", project="Own") == ["Lives in Porto."]
    assert recalled("Where do I live?", project="Both") == ["Lives in Faro.", "Lives in Lisbon."]
    server.post("/api/memory", {"text": "The gate is green.", "project": "Own"}, 201)
    assert facts(project="Own") == ["The gate is green.", "Lives in Porto."]
    (green,) = server.get("/api/memory", params={"project": "Own", "query": "gate"})["items"]
    server.call("PATCH", f"/api/memory/{green['id']}", {"pinned": True}, 200)
    server.call("DELETE", "/api/projects/Own", expect=204)
    project(server, "Own", memory="project")
    assert facts(project="Own") == []
    assert facts() == ["Lives in Lisbon."]


def test_memory_can_be_off_in_a_project(start: Start, up: ScriptedModelServer) -> None:
    """M7: nothing of its chats is remembered or recalled, unless a chat has memory of its own."""
    server = start(more={"memory": {"extract": "rules"}})
    model = up.play("unremembered", *[says("Yes.")] * 3)
    project(server, "Off", memory="none", model=model)
    sid = server.session(title="A person's", project="Off")
    assert said(server.turn(sid, "I live in Lisbon.")) == "Yes."
    assert server.post(f"/api/sessions/{sid}/memory/commit", {})["committed"] == 0
    on = server.session(title="A person's", project="Off", memory="default")
    server.turn(on, "I live in Porto.")
    assert server.post(f"/api/sessions/{on}/memory/commit", {})["committed"] == 1
