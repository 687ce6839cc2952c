"""Who decides whether a tool runs: pure values."""

from dataclasses import dataclass

import pytest

from holdfast.agents.tools.grants import StoredGrants
from holdfast.agents.tools.policy import Grant, Policy, choices, grant_of, rule_for, verdict
from holdfast.agents.tools.port import Rule, ToolResult, Validator, capped
from holdfast.core.ids import LOCAL, OwnerId, SessionId

OPEN_LOOPBACK = Policy(never_always=frozenset({"shell"}))


@pytest.mark.parametrize(
    ("rules", "default", "expected"),
    [
        ({}, "ask", "ask"),
        ({}, "allow", "allow"),
        ({"gh__list": "allow"}, "ask", "allow"),
        ({"gh__*": "allow"}, "ask", "allow"),
        ({"gh__*": "allow", "gh__list": "deny"}, "ask", "deny"),
        ({"*": "deny", "gh__*": "allow"}, "ask", "allow"),
        ({"other": "deny"}, "ask", "ask"),
    ],
)
def test_the_most_exact_rule_counts(rules: dict[str, Rule], default: Rule, expected: Rule) -> None:
    """X5: settings go before the tool's default, an exact name before a pattern, a longer pattern before a shorter."""
    assert rule_for(Policy(rules), "gh__list", default) == expected


@pytest.mark.parametrize(
    ("grants", "scope", "expected"),
    [
        ([], "", "ask"),
        ([Grant("fetch")], "a.org", "allow"),
        ([Grant("fetch", "a.org")], "a.org", "allow"),
        ([Grant("fetch", "b.org")], "a.org", "ask"),
        ([Grant("fetch", "a.org", "always")], "a.org", "allow"),
        ([Grant("shell")], "", "ask"),
    ],
)
def test_a_grant_covers_its_tool_and_scope(grants: list[Grant], scope: str, expected: Rule) -> None:
    """X5: what was allowed for one tool or host says nothing about another."""
    assert verdict(Policy(), "fetch", "ask", grants, scope) == expected


def test_a_grant_does_not_override_deny() -> None:
    """X5: what the settings deny stays denied, whatever was allowed before."""
    assert verdict(Policy({"shell": "deny"}), "shell", "ask", [Grant("shell", lasts="always")]) == "deny"


def test_the_shell_cannot_be_set_to_always_on_an_open_server() -> None:
    """X5: neither a setting nor an old or new *always* lets it run unasked; a session's allowance does."""
    assert choices(OPEN_LOOPBACK, "shell") == ("once", "session", "deny")
    assert rule_for(Policy({"shell": "allow"}, frozenset({"shell"})), "shell", "ask") == "ask"
    assert grant_of(OPEN_LOOPBACK, "always", "shell", "") is None
    assert verdict(OPEN_LOOPBACK, "shell", "ask", [Grant("shell", lasts="always")]) == "ask"
    assert verdict(OPEN_LOOPBACK, "shell", "ask", [Grant("shell", lasts="session")]) == "allow"
    assert "always" in choices(Policy(), "shell")
    assert grant_of(Policy(), "always", "shell", "") == Grant("shell", "", "always")


def test_once_and_deny_grant_nothing_more() -> None:
    """X5: an answer counts for its call unless it says otherwise."""
    assert grant_of(Policy(), "once", "write", "") is None
    assert grant_of(Policy(), "deny", "write", "") is None
    assert grant_of(Policy(), "session", "write", "x") == Grant("write", "x", "session")


# ---- arguments and results ----

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}},
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"path": "a"}, None),
        ({}, "'path' is a required property"),
        ({"path": 1}, "path: 1 is not of type 'string'"),
        ({"path": "a", "lines": [1, "x"]}, "lines.1: 'x' is not of type 'integer'"),
        ({"path": "a", "other": 1}, "'other' was unexpected"),
        ([], "a list"),
        (None, "null"),
    ],
)
def test_arguments_are_checked(args: object, says: str | None) -> None:
    """E1: what does not fit is told with its place, in words a model can act on."""
    problem = Validator(SCHEMA).problem(args)
    assert (problem is None) if says is None else (problem is not None and says in problem)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#/nowhere"},
        {"properties": {"a": {"pattern": "("}}},
    ],
)
def test_a_schema_that_cannot_be_used_is_told(schema: dict[str, object]) -> None:
    """E1: a broken or remote schema of a foreign tool neither raises nor reaches out to the network."""
    problem = Validator(schema).problem({"a": "b"})
    assert problem is not None
    assert "schema cannot be used" in problem


def test_a_long_result_keeps_its_head_and_tail() -> None:
    """E1: what is left out is said, and how much."""
    result = capped(ToolResult("a" * 600 + "b" * 600, is_error=True), 300)
    assert result.content.startswith("a" * 200)
    assert result.content.endswith("b" * 100)
    assert "900 characters left out" in result.content
    assert result.is_error


# ---- where allowances are kept ----


@dataclass(frozen=True)
class Row:
    session_id: SessionId | None
    tool: str
    scope: str


@pytest.mark.anyio
async def test_allowances_are_kept_for_a_session_or_for_all() -> None:
    """X5: what is remembered comes back as it was given, in its session or everywhere."""
    rows: list[Row] = []

    async def grants(owner: OwnerId, sid: SessionId) -> list[Row]:
        return [row for row in rows if row.session_id in (None, sid)]

    async def grant(tool: str, scope: str, owner: OwnerId, sid: SessionId | None) -> None:
        rows.append(Row(sid, tool, scope))

    kept = StoredGrants(grants, grant)
    here, there = SessionId("here"), SessionId("there")
    session, always = Grant("fetch", "a.org", "session"), Grant("write_file", "", "always")
    await kept.remember(LOCAL, here, session)
    await kept.remember(LOCAL, here, always)
    assert await kept.granted(LOCAL, here) == [session, always]
    assert await kept.granted(LOCAL, there) == [always]
