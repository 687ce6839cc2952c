"""ChatGPT exports: branches, hidden nodes, tools, reasoning, files, and what is unusual."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from tests.importers.outlines import convert_file, convert_json, outline

SAMPLES = Path(__file__).parents[1] / "fixtures" / "imports"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)


def node(key: str, parent: str | None, role: str, content: Any, **message: Any) -> dict[str, Any]:
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    author = {"role": role, "name": message.pop("name", None)}
    body = {"id": key, "author": author, "create_time": 1.7e9, "content": content, "weight": 1.0, **message}
    return {"id": key, "parent": parent, "message": body, "children": []}


def conversation(*nodes: dict[str, Any], current: str | None = None, **fields: Any) -> dict[str, Any]:
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    mapping |= {each["id"]: {**each, "children": list(each["children"])} for each in nodes}
    for each in nodes:
        if each["parent"] in mapping:
            mapping[each["parent"]]["children"].append(each["id"])
    return {
        "conversation_id": "c1",
        "title": "Tides",
        "create_time": 1.7e9,
        "mapping": mapping,
        "current_node": current or nodes[-1]["id"],
        **fields,
    }


U = node("u", "root", "user", "Hi")
CASES = {
    "plain": ([U, node("a", "u", "assistant", "Hello")], ["u: Hi", "  a*: Hello"]),
    "regenerated": (
        [U, node("a", "u", "assistant", "One"), node("b", "u", "assistant", "Two")],
        ["u: Hi", "  a: One", "  a*: Two"],
    ),
    "edited question": ([U, node("u2", "root", "user", "Hey")], ["u: Hi", "u*: Hey"]),
    "hidden system message": (
        [node("s", "root", "system", "", weight=0), node("u", "s", "user", "Hi")],
        ["u*: Hi"],
    ),
    "hidden node in the middle": (
        [U, node("h", "u", "assistant", "x", metadata={"is_visually_hidden_from_conversation": True}),
         node("a", "h", "assistant", "Hello")],
        ["u: Hi", "  a*: Hello"],
    ),
    "tool with result": (
        [U, node("c", "u", "assistant", {"content_type": "code", "text": "6*2"}, recipient="python"),
         node("t", "c", "tool", {"content_type": "execution_output", "text": "12"}, name="python"),
         node("a", "t", "assistant", "Twelve")],
        ["u: Hi", '  a*: <python {"code": "6*2"} = 12> Twelve'],
    ),
    "call without a result at the end": (
        [U, node("c", "u", "assistant", {"content_type": "code", "text": '{"q": 1}'}, recipient="search")],
        ["u: Hi", '  a*: <search {"q": 1} = unknown>'],
    ),
    "call that the person passed over": (
        [U, node("c", "u", "assistant", {"content_type": "code", "text": "x"}, recipient="python"),
         node("u2", "c", "user", "Stop")],
        ["u: Hi", '  a: <python {"code": "x"} = not_run>', "    u*: Stop"],
    ),
    "failed tool": (
        [U, node("t", "u", "tool", {"content_type": "system_error", "text": "boom"}, name="python")],
        ["u: Hi", "  a*: <python {} = boom ERROR>"],
    ),
    "interrupted": (
        [U, node("a", "u", "assistant", "At 12:5", status="in_progress")],
        ["u: Hi", "  a*: At 12:5 !interrupted"],
    ),
    "citations": (
        [U, node("a", "u", "assistant", "Noon \ue200cite\ue202x\ue201.\ue200cite\ue202y\ue201",
                 metadata={"content_references": [{"matched_text": "\ue200cite\ue202x\ue201", "alt": "(Tides)"}]})],
        ["u: Hi", "  a*: Noon (Tides)."],
    ),
    "fork inside an answer": (
        [U, node("a", "u", "assistant", "Start"), node("b", "a", "assistant", "left"),
         node("c", "a", "assistant", "right")],
        ["u: Hi", "  a: Start left", "  a*: Start right"],
    ),
    "cycle": ([U, {**node("a", "u", "assistant", "Hello"), "children": ["u"]}], ["u: Hi", "  a*: Hello"]),
    "orphan": ([U, node("x", "nowhere", "user", "Lost")], ["u: Hi", "u*: Lost"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_conversations(case: str, tmp_path: Path) -> None:
    """Each shape of a conversation becomes the tree that ChatGPT shows."""
    nodes, expected = CASES[case]
    ([section], _) = convert_json([conversation(*nodes)], tmp_path / "conversations.json")
    assert outline(section) == expected


def test_the_sample() -> None:
    """The sample export: reasoning, a tool, a missing image, an interrupted answer, and an entry without messages."""
    [section], report = convert_file(SAMPLES / "chatgpt-conversations.json")
    assert outline(section) == [
        "u: [chart.png] When is high tide on this chart?",
        "  a: First answer (regenerated away).",
        (
            "  a: (Reading the chart\nThe axis says UTC.) (Thought for 4 seconds) "
            '<python {"code": "print(6*2)"} = 12\n> High tide is at 12:00. ([Tides](https://example.com))'
        ),
        "    u: And tomorrow?",
        "      a*: At 12:5 !interrupted",
    ]
    assert (section.session.title, section.session.system) == ("Tides", "I sail.\n\nBe brief.")
    assert [reason.partition(" (")[0] for _, reason in report.skipped] == [
        "not included in the export",
        "it has no messages",
    ]


def test_flags(tmp_path: Path) -> None:
    """Archive flag, star and project are kept."""
    item = conversation(U, is_archived=True, is_starred=True, gizmo_id="g-p-68ab12cdef")
    ([section], _) = convert_json([item], tmp_path / "conversations.json")
    session = section.session
    assert (session.archived, session.pinned, session.project) == (True, True, "ChatGPT project 68ab12cd")


def test_archive_with_an_image(tmp_path: Path) -> None:
    """A file of the ZIP archive whose name begins with the id in the pointer is attached."""
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-abc", "size_bytes": 68}
    question = node("u", "root", "user", {"content_type": "multimodal_text", "parts": [pointer, "What is it?"]})
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations-000.json", json.dumps([conversation(question)]))
        archive.writestr("file-abc-chart.png", PNG)
    [section], report = convert_file(path)
    [file] = section.files.values()
    assert (file.name, file.size, file.missing, report.skipped) == ("file-abc-chart.png", 68, False, [])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ('[{"conversation_id": "c", "mapping": []}]', "(line 1), field mapping: expected an object, found a list"),
        ('[{"conversation_id": "c", "mapping": {"a": 1}}]', "mapping.a: expected an object, found a number"),
        ('[\n{"mapping": {}},\n{"conversation_id": ]', "line 3, column 21: expected a value, found ']'"),
        ('[{"mapping": {}}', "column 17: expected ',' or ']' after an item of the list, but the file ends here"),
        ('[{"mapping": {}} {}]', "line 1, column 18: expected ',' or ']'"),
        ('[{"mapping": {}}, 5]', "line 1, column 19: expected a JSON object"),
        ("[NaN]", "line 1, column 2: expected a JSON object"),
        ('[{"mapping": NaN}]', "line 1, column 14: expected a number that JSON allows, found 'NaN'"),
    ],
)  # fmt: skip
def test_malformed(value: str, problem: str, tmp_path: Path) -> None:
    """An error names the file, the place in it and what was expected."""
    with pytest.raises(InvalidInputError) as caught:
        convert_json(value, tmp_path / "conversations.json", "chatgpt")
    assert "conversations.json" in str(caught.value)
    assert problem in str(caught.value)
