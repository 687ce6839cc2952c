"""Claude exports: blocks, branches, attachments, and what is unusual."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from tests.importers.outlines import convert_file, convert_json, outline
from tests.importers.test_chatgpt import SAMPLES

ROOT = "00000000-0000-4000-8000-000000000000"


def message(key: str, sender: str, content: Any, minute: int = 0, **fields: Any) -> dict[str, Any]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    created = f"2026-01-01T00:{minute:02}:00Z"
    return {"uuid": key, "sender": sender, "text": "", "content": blocks, "created_at": created, **fields}


def conversation(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    created = "2026-01-01T00:00:00Z"
    return {"uuid": "c1", "name": "Tides", "created_at": created, "chat_messages": list(messages), **fields}


HI = message("u", "human", "Hi")
USE: dict[str, Any] = {"type": "tool_use", "name": "search", "input": {"q": 1}}
RESULT: dict[str, Any] = {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "12:00"}]}
CASES = {
    "linear": ([HI, message("a", "assistant", "Hello")], ["u: Hi", "  a*: Hello"]),
    "tree, newest leaf shown": (
        [message("u", "human", "Hi", parent_message_uuid=ROOT),
         message("a", "assistant", "One", 2, parent_message_uuid="u"),
         message("b", "assistant", "Two", 1, parent_message_uuid="u")],
        ["u: Hi", "  a*: One", "  a: Two"],
    ),
    "thinking": (
        [HI, message("a", "assistant", [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Yes"}])],
        ["u: Hi", "  a*: (Hm) Yes"],
    ),
    "summaries of thinking": (
        [HI, message("a", "assistant", [{"type": "thinking", "thinking": "", "summaries": [{"summary": "Looked"}]}])],
        ["u: Hi", "  a*: (Looked)"],
    ),
    "thinking cut off": (
        [HI, message("a", "assistant", [{"type": "thinking", "thinking": "Hm", "cut_off": True}])],
        ["u: Hi", "  a*: (Hm) !interrupted"],
    ),
    "tool with ids": (
        [HI, message("a", "assistant", [{**USE, "id": "t1"}, {**USE, "id": "t2"}, {**RESULT, "tool_use_id": "t1"}])],
        ["u: Hi", '  a*: <search {"q": 1} = 12:00> <search {"q": 1} = unknown>'],
    ),
    "tool without ids": (
        [HI, message("a", "assistant", [USE, RESULT, {"type": "text", "text": "Noon"}])],
        ["u: Hi", '  a*: <search {"q": 1} = 12:00> Noon'],
    ),
    "failed tool": (
        [HI, message("a", "assistant", [USE, {**RESULT, "is_error": True}])],
        ["u: Hi", '  a*: <search {"q": 1} = 12:00 ERROR>'],
    ),
    "call that the person passed over": (
        [HI, message("a", "assistant", [USE]), message("u2", "human", "Stop")],
        ["u: Hi", '  a: <search {"q": 1} = not_run>', "    u*: Stop"],
    ),
    "text only in the old field": ([{**HI, "content": [], "text": "Old"}], ["u*: Old"]),
    "attachment with text": (
        [{**HI, "attachments": [{"file_name": "n.txt", "extracted_content": "tides"}]}],
        ["u*: Hi [n.txt]"],
    ),
    "file without content": ([{**HI, "files": [{"file_name": "chart.png"}]}], ["u*: Hi [chart.png]"]),
    "unknown block": (
        [HI, message("a", "assistant", [{"type": "new"}, {"type": "text", "text": "Yes"}])],
        ["u: Hi", "  a*: Yes"],
    ),
    "image": (
        [message("u", "human", [{"type": "image", "source": {"media_type": "image/png", "data": "iVBORw0KGgo="}}])],
        ["u*: [image.png]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_conversations(case: str, tmp_path: Path) -> None:
    """Each shape of a conversation becomes the tree that Claude shows."""
    messages, expected = CASES[case]
    ([section], _) = convert_json([conversation(*messages)], tmp_path / "conversations.json")
    assert outline(section) == expected


def test_the_sample() -> None:
    """The sample export: a tool, an edited question, an empty answer and an empty conversation."""
    [section], report = convert_file(SAMPLES / "claude-conversations.json")
    assert outline(section) == [
        "u: When is high tide? [notes.txt] [chart.png]",
        '  a: (Look it up.) <web_search {"query": "high tide"} = 12:00> At 12:00.',
        "    u: And tomorrow?",
        "    u: (edited) And on Sunday?",
        "      a*: !interrupted",
    ]
    assert report.skipped[-1] == ("Untitled chat (7b1e2b3a-1111-4a1a-9c1a-000000000002)", "it has no messages")


def test_archive_with_projects(tmp_path: Path) -> None:
    """The project of a conversation is named in another file of the archive."""
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([conversation(HI, project_uuid="p")]))
        archive.writestr("projects.json", json.dumps([{"uuid": "p", "name": "Sailing"}]))
    [section], _ = convert_file(tmp_path / "data.zip")
    assert section.session.project == "Sailing"


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (conversation() | {"chat_messages": {}}, "field chat_messages: expected a list, found an object"),
        (conversation() | {"chat_messages": ["x"]}, "field chat_messages.0: expected an object, found a string"),
    ],
)
def test_malformed(item: dict[str, Any], problem: str, tmp_path: Path) -> None:
    """An error names the conversation and the field."""
    with pytest.raises(InvalidInputError) as caught:
        convert_json([conversation(HI), item], tmp_path / "conversations.json")
    assert f"item 2 (line 1), {problem}" in str(caught.value)
