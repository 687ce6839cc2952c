"""The translation of updates, as plain values."""

import tracemalloc
from typing import Any

import pytest

from holdfast.agents.acp.updates import UpdateTranslator
from holdfast.core import events as ev


def output(call_id: str, text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "title": "T", "content": content, **fields}


def test_of_a_long_output_only_what_can_be_shown_is_held() -> None:
    """Open calls with 100 MB of output take less than half of that, and results have the end of the output."""
    translator = UpdateTranslator(lambda: 0.0)
    tracemalloc.start()
    try:
        for number in range(50):
            translator.translate(output(f"t{number}", f"{number}" + "x" * 2_000_000 + "the end"))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 45_000_000
    *_, finished = translator.translate(
        {"sessionUpdate": "tool_call_update", "toolCallId": "t7", "status": "completed"}
    )
    assert isinstance(finished, ev.ToolFinished)
    assert isinstance(finished.result, str)
    assert finished.result.startswith("7xxx")
    assert finished.result.endswith("the end")


def test_output_that_grows_is_shown_once() -> None:
    """Each update contains all of the output; what is new is shown, up to the limit."""
    translator = UpdateTranslator(lambda: 0.0)
    shown = ""
    for size in (10, 20, 150_000, 300_000, 300_001):
        for event in translator.translate(output("t", "y" * size)):
            shown += event.output_delta if isinstance(event, ev.ToolDelta) and event.output_delta else ""
    assert shown == "y" * 200_000


@pytest.mark.parametrize(
    "said",
    [
        {"rawInput": {"content": "x" * 200_000}},
        {"rawInput": {"locations": ["a"]}},
        {"title": "x" * 501},
        {"content": [{"type": "diff", "path": "/" * 4001, "newText": ""}]},
    ],
)
def test_a_call_of_which_something_was_left_out_stays_incomplete(said: dict[str, Any]) -> None:
    """Calls are compared to find the one that a person allowed, which must not be one that only looks the same."""
    translator = UpdateTranslator(lambda: 0.0)
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "edit", "title": "Edit"}
    translator.translate(call)
    assert translator.is_complete("t")
    translator.translate(call | said)
    translator.translate(call | {"rawInput": {"path": "b"}})
    assert not translator.is_complete("t")


def test_a_terminal_that_is_shown_is_not_forgotten() -> None:
    """A command that runs for long keeps its output, however many others ran since; if too many are shown, what it
    prints next is shown all the same."""
    translator = UpdateTranslator(lambda: 0.0)

    def show(call_id: str, terminal_id: str) -> None:
        content = [{"type": "terminal", "terminalId": terminal_id}]
        translator.translate({"sessionUpdate": "tool_call", "toolCallId": call_id, "title": "T", "content": content})

    show("server", "first")
    translator.add_terminal_output("first", "listening\n")
    for number in range(30):
        translator.add_terminal_output(f"other {number}", "done\n")
    assert translator.add_terminal_output("first", "stopped\n") == [ev.ToolDelta("server", output_delta="stopped\n")]
    *_, finished = translator.translate(output("server", "", status="completed"))
    assert isinstance(finished, ev.ToolFinished)
    assert finished.result == "listening\nstopped\n"

    for number in range(30):
        show(f"call {number}", f"many {number}")
        translator.add_terminal_output(f"many {number}", "a long beginning\n")
    assert translator.add_terminal_output("many 0", "end\n") == [ev.ToolDelta("call 0", output_delta="end\n")]
