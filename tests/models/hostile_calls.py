"""Tool calls as providers stream them, and as they should not."""

from typing import Any

from tests.models.hostile_case import Call, Case, broken, case, stream
from tests.upstream import End, delta, sse


def piece(index: int | None, call_id: str | None = None, name: str | None = None, args: Any = None) -> dict[str, Any]:
    known = {"index": index, "id": call_id}
    return {"function": {"name": name, "arguments": args}} | {k: v for k, v in known.items() if v is not None}


def called(name: str, *items: list[dict[str, Any]] | Call, text: str = "") -> Case:
    """The pieces of each chunk, then the calls that they make."""
    chunks = [delta(tool_calls=item) for item in items if isinstance(item, list)]
    words = [delta(content=text)] if text else []
    script = stream(*words, *chunks, delta(finish="tool_calls"))
    calls = tuple(item for item in items if isinstance(item, Call))
    return case(name, script, text=text, calls=calls, finish="tool_calls")


CALLS = (
    called(
        "a call in pieces",
        [piece(0, "c1", "weather", "")],
        [piece(0, args='{"city":')],
        [piece(0, args=' "Łódź"}')],
        Call("c1", "weather", {"city": "Łódź"}),
    ),
    called(
        "calls in parallel, interleaved",
        [piece(0, "c1", "a", "{"), piece(1, "c2", "b", "{")],
        [piece(1, args="}"), piece(0, args="}")],
        Call("c1", "a", {}),
        Call("c2", "b", {}),
    ),
    called(
        "whole calls without an index",
        [piece(None, "c1", "a", "{}"), piece(None, "c2", "b", '{"x":1}')],
        Call("c1", "a", {}),
        Call("c2", "b", {"x": 1}),
    ),
    called(
        "whole calls under one index",
        [piece(0, "c1", "a", "{}")],
        [piece(0, "c2", "b", "{}")],
        Call("c1", "a", {}),
        Call("c2", "b", {}),
    ),
    called(
        "duplicate ids",
        [piece(0, "c1", "a", "{}"), piece(1, "c1", "b", "{}"), piece(2, "c1", "c", "{}")],
        *(Call("c1", "a", {}), Call("c1-2", "b", {}), Call("c1-3", "c", {})),
    ),
    called(
        "missing ids",
        [piece(0, None, "a", "{}"), piece(1, "", "b", "{}")],
        *(Call("call_1", "a", {}), Call("call_2", "b", {})),
    ),
    called(
        "id and name in every piece",
        [piece(0, "c1", "a", '{"x"')],
        [piece(0, "c1", "a", ":1}")],
        Call("c1", "a", {"x": 1}),
    ),
    called("arguments as an object", [piece(0, "c1", "a", {"x": 1})], Call("c1", "a", {"x": 1})),
    called("arguments as a text of a text", [piece(0, "c1", "a", '"{\\"x\\":1}"')], Call("c1", "a", {"x": 1})),
    called("no arguments", [piece(0, "c1", "a")], Call("c1", "a", {})),
    called("invalid JSON in arguments", [piece(0, "c1", "a", '{"x": ')], Call("c1", "a", '{"x": ', valid=False)),
    called("arguments that are no object", [piece(0, "c1", "a", "[1]")], Call("c1", "a", "[1]", valid=False)),
    called("a call without a name", [piece(0, "c1", None, "{}")], Call("c1", "", "{}", valid=False)),
    broken("a call that is no object", *sse(delta(tool_calls=["x"])), End(), code="protocol"),
    called("text, then a call", [piece(0, "c1", "a", "{}")], Call("c1", "a", {}), text="Let me look."),
)
