"""Tool calls as providers stream them, and as they should not."""

from tests.models.hostile_case import BEGUN, TOOLS, WEATHER, Call, Case, call, stream
from tests.upstream import End, delta, sse

CALLS = (
    Case(
        "a call in pieces",
        (
            stream(
                delta(tool_calls=[call(0, "c1", "weather", "")]),
                delta(tool_calls=[call(0, None, None, '{"city":')]),
                delta(tool_calls=[call(0, args=' "Łódź"}')]),
                TOOLS,
            ),
        ),
        calls=(Call("c1", "weather", WEATHER),),
        finish="tool_calls",
    ),
    Case(
        "calls in parallel, interleaved",
        (
            stream(
                delta(tool_calls=[call(0, "c1", "a", "{"), call(1, "c2", "b", "{")]),
                delta(tool_calls=[call(1, args="}"), call(0, args="}")]),
                TOOLS,
            ),
        ),
        calls=(Call("c1", "a", {}), Call("c2", "b", {})),
        finish="tool_calls",
    ),
    Case(
        "whole calls without an index",
        (stream(delta(tool_calls=[call(None, "c1", "a", "{}"), call(None, "c2", "b", '{"x":1}')]), TOOLS),),
        calls=(Call("c1", "a", {}), Call("c2", "b", {"x": 1})),
        finish="tool_calls",
    ),
    Case(
        "whole calls under one index",
        (stream(delta(tool_calls=[call(0, "c1", "a", "{}")]), delta(tool_calls=[call(0, "c2", "b", "{}")]), TOOLS),),
        calls=(Call("c1", "a", {}), Call("c2", "b", {})),
        finish="tool_calls",
    ),
    Case(
        "duplicate ids",
        (
            stream(
                delta(tool_calls=[call(0, "c1", "a", "{}"), call(1, "c1", "b", "{}"), call(2, "c1", "c", "{}")]), TOOLS
            ),
        ),
        calls=(Call("c1", "a", {}), Call("c1-2", "b", {}), Call("c1-3", "c", {})),
        finish="tool_calls",
    ),
    Case(
        "missing ids",
        (stream(delta(tool_calls=[call(0, None, "a", "{}"), call(1, "", "b", "{}")]), TOOLS),),
        calls=(Call("call_1", "a", {}), Call("call_2", "b", {})),
        finish="tool_calls",
    ),
    Case(
        "id and name in every piece",
        (stream(delta(tool_calls=[call(0, "c1", "a", '{"x"')]), delta(tool_calls=[call(0, "c1", "a", ":1}")]), TOOLS),),
        calls=(Call("c1", "a", {"x": 1}),),
        finish="tool_calls",
    ),
    Case(
        "arguments as an object",
        (stream(delta(tool_calls=[call(0, "c1", "a", {"x": 1})]), TOOLS),),
        calls=(Call("c1", "a", {"x": 1}),),
        finish="tool_calls",
    ),
    Case(
        "arguments as a text of a text",
        (stream(delta(tool_calls=[call(0, "c1", "a", '"{\\"x\\":1}"')]), TOOLS),),
        calls=(Call("c1", "a", {"x": 1}),),
        finish="tool_calls",
    ),
    Case(
        "no arguments",
        (stream(delta(tool_calls=[call(0, "c1", "a")]), TOOLS),),
        calls=(Call("c1", "a", {}),),
        finish="tool_calls",
    ),
    Case(
        "invalid JSON in arguments",
        (stream(delta(tool_calls=[call(0, "c1", "a", '{"x": ')]), TOOLS),),
        calls=(Call("c1", "a", '{"x": ', valid=False),),
        finish="tool_calls",
    ),
    Case(
        "arguments that are no object",
        (stream(delta(tool_calls=[call(0, "c1", "a", "[1]")]), TOOLS),),
        calls=(Call("c1", "a", "[1]", valid=False),),
        finish="tool_calls",
    ),
    Case(
        "a call without a name",
        (stream(delta(tool_calls=[call(0, "c1", None, "{}")]), TOOLS),),
        calls=(Call("c1", "", "{}", valid=False),),
        finish="tool_calls",
    ),
    Case(
        "a call that is no object", ([*BEGUN, *sse(delta(tool_calls=["x"])), End()],), text="Half an ", code="protocol"
    ),
    Case(
        "text, then a call",
        (stream(delta(content="Let me look."), delta(tool_calls=[call(0, "c1", "a", "{}")]), TOOLS),),
        text="Let me look.",
        calls=(Call("c1", "a", {}),),
        finish="tool_calls",
    ),
)
