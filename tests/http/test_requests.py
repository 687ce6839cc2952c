"""Invalid requests get an error that names the field, and change nothing."""

import contextlib
import json
import sqlite3
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.http.client import Served
from tests.http.conftest import Start

BAD_RUNS: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "input"),
    "an unknown field": ({"input": "x", "inptu": 1}, "inptu"),
    "a number for a text": ({"input": 5}, "input"),
    "an empty text": ({"input": ""}, "input"),
    "an unknown choice": ({"input": "x", "on_busy": "later"}, "on_busy"),
    "no parts": ({"input": []}, "input"),
    "an unknown part": ({"input": [{"type": "video"}]}, "input"),
    "blank parts": ({"input": [{"type": "text", "text": "  "}]}, "input"),
    "a list for an object": ([], "body"),
    "a text for a switch": ({"input": "x", "settings": "hot"}, "settings"),
}


@pytest.mark.parametrize("case", BAD_RUNS)
def test_a_wrong_field_is_named(shared: Served, case: str) -> None:
    """Every wrong field yields a 422 problem that says which one and why."""
    body, field = BAD_RUNS[case]
    sid = shared.session()
    problem = shared.post(f"/api/sessions/{sid}/runs", body, 422)
    assert problem["type"] == "invalid"
    assert problem["field"].startswith(field)
    assert problem["field"] in problem["detail"]
    assert shared.messages(sid) == []


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"input": ""}, "input: must have at least 1 character"),
        ({"input": "x", "on_busy": 5}, "on_busy: must be 'queue', 'reject' or 'interrupt'"),
        ({"input": "x", "inptu": "y"}, "inptu: is unknown; check its name"),
        ({}, "input: is required"),
    ],
)
def test_a_wrong_field_has_the_name_that_the_client_wrote(shared: Served, body: dict[str, Any], detail: str) -> None:
    """The error has no names of types, as pydantic has for each type that a field accepts."""
    assert shared.post(f"/api/sessions/{shared.session()}/runs", body, 422)["detail"] == detail


def test_an_unknown_address_leads_to_the_list_of_calls(shared: Served) -> None:
    """The same for a method that an address does not have."""
    assert "/docs lists all calls" in shared.call("GET", "/api/nothing", None, 404)["detail"]
    assert "/docs lists all calls" in shared.call("PUT", "/api/sessions", {}, 405)["detail"]


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"input": "\xff"}', b"[" * 10_000, b'{"input": "\\ud800"}', b"NaN"])
def test_a_body_that_is_no_json_is_refused(shared: Served, body: bytes) -> None:
    """Truncated objects, invalid UTF-8, endless nesting and lone surrogates are client errors."""
    sid = shared.session()
    answer = shared.http.post(f"/api/sessions/{sid}/runs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/api/sessions", "/v1/chat/completions"])
def test_many_wrong_fields_are_told_together(shared: Served, path: str) -> None:
    """Listing each of them would take the server seconds, in which nobody else is answered."""
    fields = ", ".join(f'"k{n}": 1' for n in range(15_000))
    answer = shared.http.post(path, content=f"{{{fields}}}", headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert "1500" in answer.text
    assert "values are invalid" in answer.text


def test_a_body_over_the_limit_is_refused(server: Served) -> None:
    """With Content-Length or without, it is not read to its end."""
    sid = server.session()
    big = json.dumps({"input": "x" * (9 * 1024 * 1024)}).encode()
    headers = {"Content-Type": "application/json"}
    assert server.http.post(f"/api/sessions/{sid}/runs", content=big, headers=headers).status_code == 413
    pieces = (big[at : at + 65536] for at in range(0, len(big), 65536))
    assert server.http.post(f"/api/sessions/{sid}/runs", content=pieces, headers=headers).status_code == 413


@pytest.mark.parametrize("cursor", ["x", "e30", "W10", "WyJ4Il0", "%00", "bnVsbA", "WyJhIiwgImIiXQ", "W05hTiwgIngiXQ"])
@pytest.mark.parametrize(
    "path", ["/api/sessions", "/api/runs", "/api/sessions?query=x", "/api/sessions/{sid}/messages"]
)
def test_a_bad_cursor_is_named(shared: Served, path: str, cursor: str) -> None:
    """A cursor that the list has not issued is a 422, or a 404 for an unknown message."""
    path = path.format(sid=shared.session())
    answer = shared.http.get(path + ("&" if "?" in path else "?") + f"cursor={cursor}")
    assert answer.status_code in (404, 422)
    if answer.status_code == 422:
        assert answer.json()["field"] == "cursor"


@pytest.mark.parametrize("query", ["limit=0", "limit=1000", "limit=x", "archived=maybe", "limit=" + "9" * 50])
def test_a_bad_parameter_is_named(shared: Served, query: str) -> None:
    """Also numbers out of range."""
    problem = shared.get(f"/api/sessions?{query}", 422)
    assert problem["field"] == query.partition("=")[0]


@pytest.mark.parametrize("query", ['"', "(", "a OR", "NEAR(", "*", "a*b", "-", "title:x", "\\", "'", "a" * 900, "%00"])
def test_any_words_can_be_searched_for(shared: Served, query: str) -> None:
    """No search text is an error."""
    assert shared.http.get("/api/sessions", params={"query": query}).status_code == 200


@pytest.mark.parametrize("path", ["/api/sessions/{}", "/api/runs/{}", "/api/runs/{}/events", "/api/files/{}"])
@pytest.mark.parametrize("bad", ["nothing", "%00", "%2e%2e", "ses_" + "x" * 150, "%F0%9F%A6%80", "run%0aid"])
def test_a_bad_id_is_not_found(shared: Served, path: str, bad: str) -> None:
    """An unknown or malformed id."""
    answer = shared.http.get(path.format(bad))
    assert answer.status_code in (404, 422)
    assert answer.json()["status"] == answer.status_code


def test_unknown_calls_are_problems_too(server: Served) -> None:
    """Unknown paths and methods are problem details too."""
    assert server.get("/api/nothing", 404)["type"] == "not-found"
    assert server.call("PUT", "/api/sessions", {}, 405)["type"] == "method-not-allowed"


def test_a_patch_changes_what_it_names(server: Served) -> None:
    """P6: only the given fields change, and a rename is not activity."""
    sid = server.session(title="old", tags=["a", "A", "a"])
    assert server.get(f"/api/sessions/{sid}")["tags"] == ["a"], "tags are unique"
    before = server.get(f"/api/sessions/{sid}")
    changed = server.call("PATCH", f"/api/sessions/{sid}", {"title": "new", "pinned": True}, 200)
    assert {name for name in changed if changed[name] != before[name]} == {"title", "pinned", "version"}
    assert server.call("PATCH", f"/api/sessions/{sid}", {"titel": "x"}, 422)["field"] == "titel"
    assert server.call("PATCH", f"/api/sessions/{sid}", {"pinned": "yes"}, 422)["field"] == "pinned"
    assert server.get(f"/api/sessions/{sid}") == changed


def test_what_is_said_is_not_in_the_log(start: Start) -> None:
    """Logs contain paths, states and numbers; never text of people or models."""
    server = start(log_level="debug", log_format="json")
    sid = server.session(title="a confidential title")
    rid = server.send(sid, [{"say": "a confidential answer"}, {"fail": ["oops", "a confidential reason"]}])["run"]["id"]
    server.events(rid)
    server.get("/api/sessions", params={"query": "confidential"})
    assert server.terminate() == 0
    lines = [json.loads(line) for line in server.complaints.splitlines()]
    assert {"GET", "POST"} <= {line.get("method") for line in lines}
    assert "confidential" not in server.complaints


def test_a_second_server_is_told_who_has_the_directory(fresh: Served, start: Start) -> None:
    """One process per directory: the second names the first and exits."""
    with pytest.raises(AssertionError, match="in use by process"):
        start()
    assert fresh.get("/healthz") == {"status": "ok"}


@pytest.mark.parametrize(
    "value",
    ["1e999", "-1e400", "NaN", "Infinity", "9" * 250 + "e99", "1" + "0" * 400, '"\\ud800"', '["x", {"y": 1e999}]'],
)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/sessions", '{{"settings": {{"t": {}}}}}'),
        (
            "/v1/responses",
            '{{"input": "hi", "tools": [{{"type": "function", "name": "f", "parameters": {{"t": {}}}}}]}}',
        ),
        ("/api/import", '{{"type": "session", "settings": {{"t": {}}}}}'),
        ("/api/sessions/ses_none/runs", '{{"input": "hi", "settings": {{"t": {}}}}}'),
        ("/api/compare", '{{"runs": [{{"input": "hi", "settings": {{"t": {}}}}}]}}'),
    ],
)
def test_values_that_json_cannot_carry_are_refused_everywhere(shared: Served, path: str, body: str, value: str) -> None:
    """Stored once, such a value would break every response that contains it."""
    kind = "application/x-ndjson" if path == "/api/import" else "application/json"
    answer = shared.http.post(path, content=body.format(value), headers={"Content-Type": kind})
    assert answer.status_code in (400, 422), answer.text
    assert "finite" in answer.text or "JSON" in answer.text
    assert shared.http.get("/api/sessions").status_code == 200


_PLACES = (
    ("/api/sessions", '{"settings": {"t": %s}}'),
    ("/api/import", '{"type": "session", "settings": {"t": %s}}'),
    ("/api/login", '{"password": %s}'),
    ("/v1/responses", '{"model": "agent:chat", "input": "hi", "metadata": %s}'),
    ("/v1/chat/completions", '{"model": "agent:chat", "messages": %s}'),
    ("/v1/messages", '{"model": "agent:chat", "max_tokens": 9, "messages": [], "tools": %s}'),
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(_PLACES),
    st.integers(0, 400) | st.integers(0, 20_000),
    st.sampled_from(["[", '{"a":', '[1, {"b":', "["]),
    st.sampled_from(["1", '"x"', "1e308", "true"]),
    st.integers(1, 300),
)
def test_any_nesting_is_stored_or_refused(
    shared: Served, place: tuple[str, str], depth: int, opening: str, inner: str, width: int
) -> None:
    """However deep and wide a value is, and wherever it is sent, it breaks neither its own request nor later ones."""
    path, body = place
    closing = {"[": "]", "{": "}"}
    ends = "".join(closing[letter] for letter in reversed(opening) if letter in closing)
    value = opening * depth + ", ".join([inner] * (width if opening.endswith("[") else 1)) + ends * depth
    kind = "application/x-ndjson" if path == "/api/import" else "application/json"
    answer = shared.http.post(path, content=body % value, headers={"Content-Type": kind})
    assert answer.status_code < 500, answer.text[:300]
    if path == "/api/sessions" and answer.status_code == 201:
        sid = answer.json()["id"]
        assert shared.http.get(f"/api/sessions/{sid}").status_code == 200
        assert shared.http.get(f"/api/sessions/{sid}/export").status_code == 200
    assert shared.http.get("/api/sessions").status_code == 200


def test_a_stored_value_that_json_cannot_carry_breaks_no_list(start: Start) -> None:
    """Values that earlier versions stored are shown as null."""
    server = start()
    sid, other = server.session(title="odd"), server.session(title="fine")
    server.terminate()
    with contextlib.closing(sqlite3.connect(server.data_dir / "holdfast.db")) as db, db:
        odd = '{"t": Infinity, "u": NaN, "s": "\\ud800"}'
        db.execute("UPDATE sessions SET settings = ? WHERE id = ?", (odd, sid))
    server = start()
    assert {item["id"] for item in server.get("/api/sessions")["items"]} == {sid, other}
    assert [item["id"] for item in server.get("/api/sessions?query=odd")["items"]] == [sid]
    assert server.get(f"/api/sessions/{sid}")["settings"]["t"] is None
    exported = [json.loads(line, parse_constant=pytest.fail) for line in server.http.get("/api/export").iter_lines()]
    assert {"t": None, "u": None, "s": "?"} in [line.get("settings") for line in exported]


@pytest.mark.parametrize(
    ("path", "accept", "status"),
    [
        ("/nonsense/page", "*/*", 404),
        ("/api/nonsense", "text/html", 404),
        ("/v1/nonsense", "text/html", 404),
        ("/api/login", "text/html", 405),
    ],
)
def test_an_unknown_address_is_json_for_clients_of_an_api(shared: Served, path: str, accept: str, status: int) -> None:
    """Only a browser that asks for an unknown page gets the app, which says that there is no such page."""
    response = shared.http.get(path, headers={"Accept": accept})
    assert response.status_code == status
    assert "json" in response.headers["content-type"]
