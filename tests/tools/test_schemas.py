"""Schemas of foreign tools, which are not trusted: they can neither hang nor end the process."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.json_limits import MAX_DEPTH
from holdfast.tools.schemas import argument_problem
from tests.harness import GUARD

PARENTS: dict[str, Any] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
NESTED: Any = {"type": "string"}
for _ in range(5_000):
    NESTED = {"anyOf": [NESTED]}

HOSTILE: dict[str, Any] = {
    "pattern": {"properties": {"a": {"pattern": "^(a+)+$"}}},
    "property names": {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
    "pattern of another draft": {
        "properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}}
    },
    "itself": {"$ref": "#"},
    "each other": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "exponential": {"$ref": "#/$defs/d0", "$defs": {**PARENTS, "d60": {"type": "null"}}},
    "unevaluated": {"allOf": [{"$ref": "#"}], "unevaluatedProperties": False},
    "nested": NESTED,
    "many items": {"properties": {"list": {"items": {"anyOf": [{"type": "string"}] * 200}}}},
    "large enum": {"enum": list(range(100_000))},
    "distinct items": {"properties": {"list": {"uniqueItems": True}}},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(GUARD)
def test_a_hostile_schema_is_checked_in_limited_time(name: str) -> None:
    """E1: patterns, references to themselves, exponential choices and long lists are accepted or refused at once."""
    args = {"a": "a" * 40 + "!", "a" * 40 + "!": 1, "list": [{"n": n} for n in range(3_000)]}
    began = time.thread_time()
    problem = argument_problem(HOSTILE[name], args)
    assert time.thread_time() - began < 3
    assert problem is None or "schema" in problem or problem.startswith("Invalid arguments. ")


def test_arguments_have_a_limit_of_depth() -> None:
    """E1: what later parsers could not read is refused, at any depth, without recursion."""
    for depth, is_refused in ((MAX_DEPTH - 1, False), (MAX_DEPTH, True), (100_000, True)):
        value: Any = 1
        for _ in range(depth):
            value = [value]
        problem = argument_problem({}, {"a": value})
        assert (problem is not None and "levels deep" in problem) == is_refused, depth
        while isinstance(value, list):  # from outside to inside: freeing such a list in one go is recursive
            value = value[0]


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        ({"type": ["string", "null"]}, None, None),
        ({"type": "integer"}, 1.0, None),
        ({"type": "integer"}, True, "True is not of type 'integer'"),
        ({"type": "number"}, "1", "'1' is not of type 'number'"),
        ({"enum": ["a", 1]}, True, "True is not one of ['a', 1]"),
        ({"const": 2}, 2, None),
        ({"exclusiveMinimum": 0}, 0, "less than or equal"),
        ({"maximum": 3}, 4, "greater than the maximum of 3"),
        ({"minLength": 1}, "", "too short"),
        ({"maxItems": 1}, [1, 2], "too long"),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["a", 1, "b"], "a.2: 'b' is not"),
        ({"anyOf": [{"type": "string"}, {"properties": {"x": {"type": "null"}}}]}, {"x": 1}, "a.x: 1 is not"),
        ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, "a", "more than one"),
        ({"not": {"type": "string"}}, "a", "'a' is not allowed"),
        ({"additionalProperties": {"type": "integer"}}, {"x": "y"}, "a.x: 'y' is not of type"),
        ({"$ref": "#/$defs/a~1b"}, 1, "1 is not of type 'string'"),
        (False, 1, "1 is not allowed"),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"x1": 1}, None),
    ],
)
def test_keywords_are_applied(schema: Any, value: Any, says: str | None) -> None:
    """E1: the keywords that tools use are checked, and the message names the place."""
    whole = {"properties": {"a": schema}, "$defs": {"a/b": {"type": "string"}}}
    problem = argument_problem(whole, {"a": value})
    assert (problem is None) if says is None else (problem is not None and says in problem), problem


KEYWORDS = [
    "type",
    "properties",
    "required",
    "items",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "$ref",
    "enum",
    "const",
    "minimum",
    "pattern",
    "patternProperties",
]
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["#", "#/not", "string", "object", "a", "", "^(a+)+$", "a" * 40 + "!"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "a", "b", "^(a|a)*$"]), inner, max_size=4)
    ),
    max_leaves=25,
)


@settings(deadline=None)
@given(json_values, st.dictionaries(st.sampled_from(["a", "b", "type"]), json_values, max_size=3))
def test_no_schema_raises(schema: Any, args: dict[str, Any]) -> None:
    """E1: whatever a tool declares, its arguments are valid or there is a sentence for the model."""
    problem = argument_problem(schema, args)
    assert problem is None or problem.startswith(("The arguments", "Invalid arguments. ", "The tool's own schema"))
