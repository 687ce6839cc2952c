"""Sources made to exhaust the server: time and memory stay in proportion to their size."""

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.chat_rows import ChatRow, join_segments
from holdfast.importers.session_builder import SessionBuilder
from holdfast.importers.sources import SourceApp
from tests.importers.outlines import convert_json, outline
from tests.importers.work import grows_linearly


def open_webui(message: dict[str, Any]) -> list[dict[str, Any]]:
    answer = {"id": "m", "role": "assistant", **message}
    return [{"id": "a", "chat": {"history": {"currentId": "m", "messages": {"m": answer}}}}]


def test_attributes_of_a_block_are_read_in_linear_time(tmp_path: Path) -> None:
    """A word of 50,000 characters that is no attribute takes no noticeable time; trying each of its ends takes long."""
    content = f'<details type="tool_calls" {"x" * 50_000} name="f">\nb</details>'
    before = time.thread_time()
    [section], _ = convert_json(open_webui({"content": content}), tmp_path / "chats.json")
    assert time.thread_time() - before < 2
    assert outline(section) == ["a*: <f {} = unknown>"]


def test_an_endless_character_reference_is_text(tmp_path: Path) -> None:
    """A reference with more digits than Python converts stays as it is."""
    content = f'<details type="code_interpreter">&#{"9" * 5000};</details>'
    [section], _ = convert_json(open_webui({"content": content}), tmp_path / "chats.json")
    assert outline(section) == [f"a*: &#{'9' * 5000};"]


def test_long_ids_are_not_copied_for_each_reply(tmp_path: Path) -> None:
    """Two thousand replies to a message with an id of 50,000 characters take far less than 100 MB."""
    replies = [{"messageId": f"c{n}", "text": "y"} for n in range(2000)]
    tree = [{"messageId": "k" * 50_000, "text": "x", "children": replies}]
    tracemalloc.start()
    try:
        convert_json([{"conversationId": "a", "messagesTree": tree}], tmp_path / "chat.json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 25 * 1024 * 1024


def add_results(count: int) -> None:
    parts = AnswerParts()
    for n in range(count):
        parts.add_call(f"c{n}", "f", {})
    for _ in range(count):
        parts.add_result("", "", "x")
    for n in range(count):
        parts.add_call(f"d{n}", f"f{n}", {})
    for n in range(count):
        parts.add_result("", f"f{n}", "x")


def test_results_without_an_id_are_matched_in_linear_time() -> None:
    """Each result finds its call without a search through those that wait."""
    assert grows_linearly(add_results)


def test_results_without_an_id_belong_to_the_nearest_call() -> None:
    """With a name, to the nearest call of that name; without one, to the nearest that has no result."""
    parts = AnswerParts()
    for call_id, name in (("1", "a"), ("2", "b"), ("3", "a"), ("4", "b")):
        parts.add_call(call_id, name, {})
    for call_id, name, result in (("", "a", "A3"), ("4", "", "B4"), ("", "", "B2"), ("", "a", "A1"), ("", "a", "new")):
        parts.add_result(call_id, name, result)
    found = [(part.call_id, part.result) for part in parts.finish(user_follows=False)]  # type: ignore[union-attr]
    assert found == [("1", "A1"), ("2", "B2"), ("3", "A3"), ("4", "B4"), ("call_5", "new")]


def join_summaries(count: int) -> None:
    rows = []
    for n in range(count):
        rows += [ChatRow("user", f"u{n}"), ChatRow("user", f"[CONTEXT SUMMARY]: s{n}")]
    assert len(join_segments(rows)) == 2 * count


def test_summaries_after_every_row_are_joined_in_linear_time() -> None:
    """Each compaction looks at its own segment, not at all rows before it."""
    assert grows_linearly(join_summaries)


def test_compactions_are_found_by_their_message() -> None:
    """Adding a compaction does not search the others."""

    def compact(count: int) -> None:
        builder = SessionBuilder("app", "id", lambda item, reason: None)
        for n in range(count):
            builder.add_compaction(builder.add("user", None, [], key=str(n)), "summary")

    assert grows_linearly(compact)


def files_of_claude(count: int) -> Any:
    files = [{"file_name": f"f{n}", "file_uuid": f"{n}"} for n in range(count)]
    message = {"uuid": "m", "sender": "human", "text": "x", "files": files, "files_v2": files}
    return [{"uuid": "a", "name": "t", "chat_messages": [message]}]


@pytest.mark.parametrize(("app", "make"), [("claude", files_of_claude)])
def test_sources_are_converted_in_linear_time(tmp_path: Path, app: SourceApp, make: Any) -> None:
    """Lists inside a message are not searched for each of their items."""
    path = tmp_path / "source.json"

    def run(count: int) -> None:
        path.write_text(json.dumps(make(count)))
        convert_json(path.read_text(), path, app)

    assert grows_linearly(run)
