"""Bad input gets a clear error that names the field, and changes nothing."""

import json
from typing import Any

import pytest

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


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"input": "\xff"}', b"[" * 100_000, b'{"input": "\\ud800"}', b"NaN"])
def test_a_body_that_is_no_json_is_refused(shared: Served, body: bytes) -> None:
    """Half an object, bytes that are no text, endless nesting and lone surrogates are the client's mistake."""
    sid = shared.session()
    answer = shared.http.post(f"/api/sessions/{sid}/runs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_over_the_limit_is_refused(server: Served) -> None:
    """Announced or not, it is not read to its end."""
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
    """A cursor that the list has not given out is a 422, or leads to a message that is not there."""
    path = path.format(sid=shared.session())
    answer = shared.http.get(path + ("&" if "?" in path else "?") + f"cursor={cursor}")
    assert answer.status_code in (404, 422)
    if answer.status_code == 422:
        assert answer.json()["field"] == "cursor"


@pytest.mark.parametrize("query", ["limit=0", "limit=1000", "limit=x", "archived=maybe", "limit=" + "9" * 50])
def test_a_bad_parameter_is_named(shared: Served, query: str) -> None:
    """Also numbers out of bounds."""
    problem = shared.get(f"/api/sessions?{query}", 422)
    assert problem["field"] == query.partition("=")[0]


@pytest.mark.parametrize("query", ['"', "(", "a OR", "NEAR(", "*", "a*b", "-", "title:x", "\\", "'", "a" * 900, "%00"])
def test_any_words_can_be_searched_for(shared: Served, query: str) -> None:
    """Nothing that a person types is an error."""
    assert shared.http.get("/api/sessions", params={"query": query}).status_code == 200


@pytest.mark.parametrize("path", ["/api/sessions/{}", "/api/runs/{}", "/api/runs/{}/events", "/api/files/{}"])
@pytest.mark.parametrize("bad", ["nothing", "%00", "%2e%2e", "ses_" + "x" * 150, "%F0%9F%A6%80", "run%0aid"])
def test_a_bad_id_is_not_found(shared: Served, path: str, bad: str) -> None:
    """An id that never was, in whatever shape."""
    answer = shared.http.get(path.format(bad))
    assert answer.status_code in (404, 422)
    assert answer.json()["status"] == answer.status_code


def test_unknown_calls_are_problems_too(server: Served) -> None:
    """A path or a method that does not exist is answered in the same form."""
    assert server.get("/api/nothing", 404)["type"] == "not-found"
    assert server.call("PUT", "/api/sessions", {}, 405)["type"] == "method-not-allowed"


def test_a_patch_changes_what_it_names(server: Served) -> None:
    """P6: and nothing else; a rename is no activity."""
    sid = server.session(title="old", tags=["a"])
    before = server.get(f"/api/sessions/{sid}")
    changed = server.call("PATCH", f"/api/sessions/{sid}", {"title": "new", "pinned": True}, 200)
    assert {name for name in changed if changed[name] != before[name]} == {"title", "pinned", "version"}
    assert server.call("PATCH", f"/api/sessions/{sid}", {"titel": "x"}, 422)["field"] == "titel"
    assert server.call("PATCH", f"/api/sessions/{sid}", {"pinned": "yes"}, 422)["field"] == "pinned"
    assert server.get(f"/api/sessions/{sid}") == changed


def test_a_page_ends_and_leads_on(server: Served) -> None:
    """Keyset paging: every item once, in order, whatever the page size."""
    made = [server.session(title=f"s{n}") for n in range(7)]
    for limit in (1, 2, 3, 7, 50):
        seen, cursor = [], None
        while True:
            params = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
            page = server.get("/api/sessions", params=params)
            seen += [item["id"] for item in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
            assert len(page["items"]) == limit
        assert seen == made[::-1]


def test_what_is_said_is_not_in_the_log(start: Start) -> None:
    """Logs have paths, states and numbers; never words of people or models."""
    server = start(log_level="debug", log_format="json")
    sid = server.session(title="a confidential title")
    rid = server.send(sid, [{"say": "a confidential answer"}, {"fail": ["oops", "a confidential reason"]}])["run"]["id"]
    server.events(rid)
    server.get("/api/sessions", params={"query": "confidential"})
    assert server.terminate() == 0
    lines = [json.loads(line) for line in server.complaints.splitlines()]
    assert {"GET", "POST"} <= {line.get("method") for line in lines}
    assert "confidential" not in server.complaints


def test_a_second_server_is_told_who_has_the_directory(server: Served, start: Start) -> None:
    """One process a directory: the second says who has it and goes."""
    with pytest.raises(AssertionError, match="in use by process"):
        start()
    assert server.get("/healthz") == {"status": "ok"}
