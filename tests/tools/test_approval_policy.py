"""Who decides whether a tool runs: pure values."""

import pytest

from holdfast.core.events import Decision
from holdfast.core.ids import LOCAL, SessionId
from holdfast.ports.store import ToolGrant
from holdfast.ports.tool import Rule, ToolResult
from holdfast.tools.approval_policy import ApprovalPolicy, lasting, rule_for, verdict, why_never_always
from holdfast.tools.result_text import cap_result
from holdfast.tools.schemas import argument_problem

HERE = SessionId("here")
OPEN_LOOPBACK = ApprovalPolicy(never_always=frozenset({"shell"}))


def allowed(tool: str, scope: str = "", sid: SessionId | None = HERE) -> ToolGrant:
    return ToolGrant(LOCAL, sid, tool, scope, 0.0)


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
    assert rule_for(ApprovalPolicy(rules), "gh__list", default) == expected


@pytest.mark.parametrize(
    ("grants", "scope", "expected"),
    [
        ([], "", "ask"),
        ([allowed("fetch")], "a.org", "allow"),
        ([allowed("fetch", "a.org")], "a.org", "allow"),
        ([allowed("fetch", "b.org")], "a.org", "ask"),
        ([allowed("fetch", "a.org", None)], "a.org", "allow"),
        ([allowed("shell")], "", "ask"),
    ],
)
def test_a_grant_covers_its_tool_and_scope(grants: list[ToolGrant], scope: str, expected: Rule) -> None:
    """X5: what was allowed for one tool or host says nothing about another, and the settings' deny stays."""
    assert verdict(ApprovalPolicy(), "fetch", "ask", grants, scope) == expected
    assert verdict(ApprovalPolicy({"fetch": "deny"}), "fetch", "ask", grants, scope) == "deny"


def test_the_shell_cannot_be_set_to_always_on_an_open_server() -> None:
    """X5: neither a setting nor an old or new *always* lets it run unasked; a session's allowance does."""
    assert rule_for(ApprovalPolicy({"shell": "allow"}, frozenset({"shell"})), "shell", "ask") == "ask"
    assert lasting(OPEN_LOOPBACK, "always", "shell") is None
    assert verdict(OPEN_LOOPBACK, "shell", "ask", [allowed("shell", sid=None)]) == "ask"
    assert verdict(OPEN_LOOPBACK, "shell", "ask", [allowed("shell")]) == "allow"


@pytest.mark.parametrize("rules", [{"fetch": "ask"}, {"f*": "ask"}])
def test_a_rule_that_asks_overrides_always(rules: dict[str, Rule]) -> None:
    """X5: *ask* in the settings asks in every session, whatever was always allowed before; a session's allowance
    counts."""
    policy = ApprovalPolicy(rules)
    assert verdict(policy, "fetch", "ask", [allowed("fetch", sid=None)]) == "ask"
    assert verdict(policy, "fetch", "ask", [allowed("fetch")]) == "allow"
    assert lasting(policy, "always", "fetch") is None
    assert "rule" in (why_never_always(policy, "fetch") or "")
    assert why_never_always(ApprovalPolicy(), "fetch") is None


def test_an_answer_counts_for_its_call_unless_it_says_otherwise() -> None:
    """X5: once and deny allow nothing more."""
    decisions: tuple[Decision, ...] = ("once", "session", "always", "deny")
    lasts = [lasting(ApprovalPolicy(), decision, "write") for decision in decisions]
    assert lasts == [None, "session", "always", None]


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
    problem = argument_problem(SCHEMA, args)
    assert (problem is None) if says is None else (problem is not None and says in problem)


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "http://127.0.0.1:9/schema.json"}, {"$ref": "#/nowhere"}, {"properties": ["a"]}, {"allOf": 1}, 7],
)
def test_a_schema_that_cannot_be_used_is_told(schema: dict[str, object]) -> None:
    """E1: a broken or remote schema of a foreign tool neither raises nor reaches out to the network."""
    problem = argument_problem(schema, {"a": "b"})
    assert problem is not None
    assert "schema is invalid" in problem


def test_a_deep_result_becomes_text() -> None:
    """E1: what a parser of journals or pages could not read back is kept as a string."""
    content: object = "end"
    for _ in range(190):
        content = [content]
    assert cap_result(ToolResult(content)).content == "[" * 190 + '"end"' + "]" * 190


def test_a_long_result_keeps_its_head_and_tail() -> None:
    """E1: what is left out is said, and how much."""
    result = cap_result(ToolResult("a" * 600 + "b" * 600, is_error=True), 300)
    assert result.content.startswith("a" * 200)
    assert result.content.endswith("b" * 100)
    assert "900 characters left out" in result.content
    assert result.is_error
