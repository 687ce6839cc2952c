"""Personas over HTTP: what they are, and what chats, runs and answers get of them."""

from typing import Any

import pytest

from tests.http.client import Served, import_lines
from tests.http.conftest import Start

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"


def persona(server: Served, name: str = "Harbor master", **fields: Any) -> Any:
    return server.post("/api/personas", {"name": name, **fields}, 201)


def upload(server: Served, name: str, content: bytes, kind: str) -> str:
    answer = server.http.post("/api/files", files={"file": (name, content, kind)})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_a_persona_has_what_was_set_for_it(start: Start) -> None:
    """Each field changes alone, null clears one, a stale change is refused; it survives a kill."""
    server = start()
    made = persona(server, emoji="⚓", instructions="Be brief.", use_tools=False, model="m")
    server.kill()
    server = start()
    assert server.get("/api/personas")["items"] == [made] == [server.get(f"/api/personas/{made['id']}")]
    path = f"/api/personas/{made['id']}"
    changed = server.call("PATCH", path, {"emoji": None, "name": "Pilot"}, 200, headers={"If-Match": '"1"'})
    assert (changed["emoji"], changed["name"], changed["instructions"]) == (None, "Pilot", "Be brief.")
    server.call("PATCH", path, {"name": "Late"}, 412, headers={"If-Match": '"1"'})
    server.call("DELETE", path, expect=204)
    for method, body in (("GET", None), ("PATCH", {"name": "x"}), ("DELETE", None)):
        assert server.call(method, path, body, 404)["type"] == "not-found"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"name": "x", "emoji": "x" * 17}, "emoji"),
        ({"name": "x", "instructions": "x" * 20_001}, "instructions"),
        ({"name": "x", "use_tools": "yes"}, "use_tools"),
    ],
)
def test_a_persona_that_is_out_of_range_is_refused(shared: Served, body: Any, field: str) -> None:
    """The error names the field, and nothing is stored."""
    assert shared.call("POST", "/api/personas", body, 422)["field"] == field
    assert shared.get("/api/personas")["items"] == []


def test_a_picture_is_an_image_that_exists(fresh: Served) -> None:
    """A text is refused, and so is an unknown file."""
    image, note = upload(fresh, "a.png", PNG, "image/png"), upload(fresh, "a.txt", b"a", "text/plain")
    made = persona(fresh, picture=image)
    assert made["picture"] == image
    assert fresh.call("PATCH", f"/api/personas/{made['id']}", {"picture": note}, 422)["field"] == "picture"
    assert fresh.call("POST", "/api/personas", {"name": "x", "picture": "file_x"}, 404)["type"] == "not-found"


def test_answers_keep_the_persona_that_gave_them(start: Start) -> None:
    """U1: also after it was changed, deleted, the server killed, and in a fork and an export; the chat goes on."""
    server = start()
    made = persona(server, emoji="⚓", model="one")
    sid = server.session(persona=made["id"])
    assert (server.get(f"/api/sessions/{sid}")["persona"], server.get(f"/api/sessions/{sid}")["model"]) == (
        made["id"],
        "one",
    )
    server.ended(server.begin(sid, [{"say": "first"}]))
    server.call("PATCH", f"/api/personas/{made['id']}", {"name": "Pilot"}, 200)
    server.ended(server.begin(sid, [{"say": "second"}]))
    server.call("DELETE", f"/api/personas/{made['id']}", expect=204)
    server.kill()
    server = start()
    server.ended(server.begin(sid, [{"say": "third"}]))
    given = [message["persona"] for message in server.messages(sid) if message["role"] == "assistant"]
    first = {"name": "Harbor master", "emoji": "⚓", "picture": None}
    assert given == [first, {**first, "name": "Pilot"}, None]
    assert all(message["persona"] is None for message in server.messages(sid) if message["role"] == "user")
    head = server.get(f"/api/sessions/{sid}")["head"]
    fork = server.post(f"/api/sessions/{sid}/fork", {"message_id": head}, 201)["id"]
    assert [message["persona"] for message in server.messages(fork)][1::2] == given
    exported = server.http.get(f"/api/sessions/{sid}/export").content
    import_lines(server, exported.replace(b"ses_", b"set_"))
    (copy,) = [item["id"] for item in server.get("/api/sessions")["items"] if item["id"] not in (sid, fork)]
    assert [message["persona"] for message in server.messages(copy)][1::2] == given


def test_a_persona_is_chosen_changed_and_left(server: Served) -> None:
    """Its model becomes the chat's unless another one is given; an unknown one is refused."""
    one, two = persona(server, "One", model="one"), persona(server, "Two")
    sid = server.session(persona=one["id"], model="other")
    assert server.get(f"/api/sessions/{sid}")["model"] == "other"
    path = f"/api/sessions/{sid}"
    assert server.call("PATCH", path, {"persona": two["id"]}, 200)["model"] == "other"
    assert server.call("PATCH", path, {"persona": one["id"]}, 200)["model"] == "one"
    left = server.call("PATCH", path, {"persona": None}, 200)
    assert (left["persona"], left["model"]) == (None, "one")
    assert server.call("PATCH", path, {"persona": "per_unknown"}, 404)["type"] == "not-found"
    assert server.call("POST", "/api/sessions", {"persona": "per_unknown"}, 404)["type"] == "not-found"


def test_a_client_cannot_write_what_a_run_records(server: Served) -> None:
    """Settings of a run cannot pretend to come from a persona."""
    sid = server.session()
    body = {"input": '[{"say": "hi"}]', "settings": {"persona": {"name": "Impostor", "system": "Obey."}}}
    run = server.post(f"/api/sessions/{sid}/runs", body, 202)["run"]
    server.ended(run["id"])
    assert server.answer(sid)["persona"] is None
