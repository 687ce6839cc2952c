"""LibreChat exports: nested and flat, content parts, errors, and conversations deeper than a parser's stack."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from tests.importers.outlines import convert_file, convert_json, outline
from tests.importers.test_chatgpt import SAMPLES

ROOT = "00000000-0000-0000-0000-000000000000"


def message(key: str, parent: str, text: str = "", *, by_user: bool = False, **fields: Any) -> dict[str, Any]:
    created = "2024-04-09T14:32:05.230Z"
    common = {"messageId": key, "parentMessageId": parent, "text": text, "createdAt": created}
    return {**common, "isCreatedByUser": by_user, **fields}


def flat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"conversationId": "c1", "title": "Tides", "messages": list(messages), **fields}


def call(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_call", "tool_call": {"id": "c", "name": "tide", "args": '{"p":1}', **fields}}


U = message("u", ROOT, "Hi", by_user=True)
CASES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "plain": ([U, message("a", "u", "Hello")], ["u: Hi", "  a*: Hello"]),
    "branches": ([U, message("a", "u", "One"), message("b", "u", "Two")], ["u: Hi", "  a: One", "  a*: Two"]),
    "child before its parent": ([message("a", "u", "Hello"), U], ["u: Hi", "  a*: Hello"]),
    "text as an object": (
        [U, message("a", "u", content=[{"type": "text", "text": {"value": "Yes"}}])],
        ["u: Hi", "  a*: Yes"],
    ),
    "reasoning": (
        [U, message("a", "u", content=[{"type": "think", "think": {"value": "Hm"}}])],
        ["u: Hi", "  a*: (Hm)"],
    ),
    "tool": (
        [U, message("a", "u", content=[call(output="12:00", progress=1)])],
        ["u: Hi", '  a*: <tide {"p": 1} = 12:00>'],
    ),
    "tool without output": (
        [U, message("a", "u", content=[call(progress=0.1)])],
        ["u: Hi", '  a*: <tide {"p": 1} = unknown>'],
    ),
    "tool that the person passed over": (
        [U, message("a", "u", content=[call()]), message("u2", "a", "Stop", by_user=True)],
        ["u: Hi", '  a: <tide {"p": 1} = not_run>', "    u*: Stop"],
    ),
    "arguments as an object": (
        [U, message("a", "u", content=[call(args={"p": 2}, output="x")])],
        ["u: Hi", '  a*: <tide {"p": 2} = x>'],
    ),
    "error part": ([U, message("a", "u", content=[{"type": "error", "error": "No key"}])], ["u: Hi", "  a*: !failed"]),
    "error flag": ([U, message("a", "u", "No key", error=True)], ["u: Hi", "  a*: !failed"]),
    "unfinished": ([U, message("a", "u", "At 12:5", unfinished=True)], ["u: Hi", "  a*: At 12:5 !interrupted"]),
    "file": ([{**U, "files": [{"filename": "n.pdf", "bytes": 5}]}], ["u*: Hi [n.pdf]"]),
}


@pytest.mark.parametrize("case", CASES)
def test_conversations(case: str, tmp_path: Path) -> None:
    """Each shape of a conversation becomes the tree that LibreChat shows."""
    messages, expected = CASES[case]
    ([section], _) = convert_json(flat(*messages), tmp_path / "c.json")
    assert outline(section) == expected


def test_both_samples_are_the_same_conversation() -> None:
    """The nested and the flat export of a conversation have the same messages with the same ids."""
    [nested], _ = convert_file(SAMPLES / "librechat-export-recursive.json")
    [listed], _ = convert_file(SAMPLES / "librechat-export-flat.json")
    assert outline(nested) == outline(listed)
    assert [each.id for each in nested.messages] == [each.id for each in listed.messages]
    assert nested.session.system == "Be brief."


def test_deep_nesting(tmp_path: Path) -> None:
    """A nested export of three thousand messages is read, though the standard parser's stack is shallower."""
    count = 3000
    opened = "".join(
        json.dumps(message(f"m{n}", ROOT, f"text [{n}]", by_user=n % 2 == 0))[:-1] + ', "children": ['
        for n in range(count)
    )
    text = '{"conversationId": "c1", "messagesTree": [' + opened + "]}" * count + "]}"
    ([section], _) = convert_json(text, tmp_path / "c.json")
    assert len(section.messages) == count
    assert outline(section)[-1].strip() == f"a*: text [{count - 1}]"
    with pytest.raises(InvalidInputError, match="at most 20000 levels of nesting"):
        convert_json('{"conversationId": "c1", "messages": ' + "[" * 30_000, tmp_path / "c.json", "librechat")


def test_directory_of_conversations(tmp_path: Path) -> None:
    """Every conversation of a directory is imported, and other files are named as skipped."""
    (tmp_path / "a.json").write_text(json.dumps(flat(U, isArchived=True, tags=["sea"])))
    (tmp_path / "b.json").write_text(json.dumps({"other": 1}))
    [section], report = convert_file(tmp_path, "librechat")
    assert (section.session.archived, section.session.tags) == (True, ("sea",))
    assert report.skipped == [("b.json", "it is not a LibreChat conversation (b.json)")]


def test_malformed(tmp_path: Path) -> None:
    """An error names the message and the field, also inside nested replies."""
    with pytest.raises(InvalidInputError, match=r"messages\.1\.messageId: expected a non-empty string, found nothing"):
        convert_json(flat(U, {}), tmp_path / "c.json")
    nested = {"conversationId": "c1", "messagesTree": [{**U, "children": [7]}]}
    with pytest.raises(InvalidInputError, match=r"children of u\.0: expected an object, found a number"):
        convert_json(nested, tmp_path / "c.json")
