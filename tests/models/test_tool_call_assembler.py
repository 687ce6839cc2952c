"""Arguments of tool calls, however large a model writes them."""

import json

import pytest

from holdfast.models.tool_call_assembler import ToolCallAssembler
from holdfast.ports.model import ToolCall


def assembled(*arguments: str) -> list[ToolCall]:
    calls = ToolCallAssembler()
    for index, text in enumerate(arguments):
        calls.write({"index": index, "function": {"name": "look", "arguments": text}})
    return list(calls.complete())


HIDDEN = '{"x": "\t", "a": [' + "[]," * 100_000 + '1], "y": "\t"}'
VALUES = '{"a": [' + "[]," * 100_000 + "1]}"


@pytest.mark.parametrize(
    "text",
    [VALUES, json.dumps(VALUES), '{"a": [' + '"",' * 50_000 + "1]}", json.dumps(HIDDEN)],
    ids=["structure", "encoded twice", "strings", "behind a tab"],
)
def test_arguments_of_too_many_values_are_not_parsed(text: str) -> None:
    """L6: nothing else runs while they are parsed, whatever they are; the model is told."""
    (call,) = assembled(text)
    assert call.invalid is not None
    assert call.args == text


def test_the_calls_of_one_answer_share_the_limit() -> None:
    """L6: many calls are as much as one large one; unfinished text in one hides nothing of another."""
    part = '{"a": [' + "[]," * 5_000 + "1]}"
    calls = assembled('{"a": "', *[part] * 100)
    assert [call.invalid is None for call in calls] == [False, *[True] * 8, *[False] * 92]
    assert "too large" in str(calls[-1].invalid)


def test_long_text_is_one_value() -> None:
    """A file that is written is allowed, twice encoded too, up to a size of all together."""
    text = json.dumps({"content": '[],{"' * 100_000})
    calls = assembled(text, json.dumps(text), *[text] * 60)
    assert [call.args for call in calls[:2]] == [json.loads(text)] * 2
    assert calls[-1].invalid is not None
