"""The prompt library over HTTP."""

from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start


def save(server: Served, name: str, text: str = "Hello", **fields: Any) -> Any:
    return server.post("/api/prompts", {"name": name, "text": text, **fields}, 201)


def test_a_prompt_is_saved_changed_and_deleted(start: Start) -> None:
    """By id or name, after a kill too; a stale change is refused."""
    server = start()
    made = save(server, "greet", "Hello {{name}} from {{place=here}}", description="Says hello")
    assert made["variables"] == [{"name": "name", "default": None}, {"name": "place", "default": "here"}]
    server.kill()
    server = start()
    assert server.get("/api/prompts/greet") == server.get(f"/api/prompts/{made['id']}") == made
    changed = server.call("PATCH", "/api/prompts/greet", {"name": "hi", "text": "Hi"}, 200, headers={"If-Match": '"1"'})
    assert (changed["name"], changed["text"], changed["description"]) == ("hi", "Hi", "Says hello")
    server.call("PATCH", "/api/prompts/hi", {"text": "Ho"}, 412, headers={"If-Match": '"1"'})
    server.call("DELETE", "/api/prompts/hi", expect=204)
    for method, body in (("GET", None), ("PATCH", {"text": "x"}), ("DELETE", None)):
        assert server.call(method, f"/api/prompts/{made['id']}", body, 404)["type"] == "not-found"


def test_the_library_is_filled_listed_exported_and_imported(start: Start) -> None:
    """Pages are in the order of names. An import adds what is new, and replaces only if it is told to."""
    server = start()
    for name in ("c", "a", "b"):
        save(server, name, f"{name} {{{{x={name}}}}}")
    first = server.get("/api/prompts?limit=2")
    rest = server.get("/api/prompts", params={"limit": 2, "cursor": first["next"]})
    assert [item["name"] for page in (first, rest) for item in page["items"]] == ["a", "b", "c"]
    assert rest["next"] is None
    assert server.post("/api/prompts/a/fill", {"values": {"x": "y"}})["text"] == "a y"
    assert server.post("/api/prompts/a/fill", {})["text"] == "a a"
    assert server.post("/api/prompts/a/fill", {"values": {"z": "y"}}, 422)["field"] == "values"
    exported = server.get("/api/prompts/export")
    assert (exported["format"], exported["version"], len(exported["prompts"])) == ("holdfast-prompts", 1, 3)
    server.call("PATCH", "/api/prompts/a", {"text": "changed"}, 200)
    server.call("DELETE", "/api/prompts/c", expect=204)
    assert server.post("/api/prompts/import", exported) == {"added": ["c"], "replaced": [], "skipped": ["a"]}
    assert server.get("/api/prompts/a")["text"] == "changed"
    result = server.post("/api/prompts/import?on_conflict=replace", exported)
    assert result == {"added": [], "replaced": ["a"], "skipped": []}
    assert server.get("/api/prompts/export") == exported


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "Greet", "text": "x"}, "name"),
        ({"name": "a b", "text": "x"}, "name"),
        ({"name": "x" * 65, "text": "x"}, "name"),
        ({"name": "x", "text": ""}, "text"),
        ({"name": "x", "text": " "}, "text"),
        ({"name": "x", "text": "x" * 20_001}, "text"),
        ({"name": "x", "text": "".join(f"{{{{v{n}}}}}" for n in range(21))}, "text"),
        ({"name": "x", "text": "x", "description": "x" * 201}, "description"),
    ],
)
def test_a_prompt_that_is_out_of_range_is_refused(shared: Served, body: Any, field: str) -> None:
    """The error names the field; an import with such a prompt stores nothing."""
    assert shared.call("POST", "/api/prompts", body, 422)["field"] == field
    good = {"name": "good", "text": "x"}
    document = {"format": "holdfast-prompts", "version": 1, "prompts": [good, body]}
    shared.call("POST", "/api/prompts/import", document, 422)
    assert shared.get("/api/prompts")["items"] == []


def test_names_are_unique(server: Served) -> None:
    """Creating or renaming to a name that is in use is refused."""
    save(server, "one")
    save(server, "two")
    assert server.call("POST", "/api/prompts", {"name": "one", "text": "x"}, 409)["type"] == "not-allowed"
    assert server.call("PATCH", "/api/prompts/two", {"name": "one"}, 409)["type"] == "not-allowed"


@pytest.mark.parametrize(
    "document",
    [
        {"format": "other", "version": 1, "prompts": []},
        {"format": "holdfast-prompts", "version": 2, "prompts": []},
        {"format": "holdfast-prompts", "version": 1, "prompts": [{"name": "x", "text": "x"}] * 1001},
        {"format": "holdfast-prompts", "version": 1},
        [],
    ],
)
def test_what_is_no_library_is_refused(shared: Served, document: Any) -> None:
    """Also one of a newer version, and one with more prompts than may be stored."""
    shared.call("POST", "/api/prompts/import", document, 422)
