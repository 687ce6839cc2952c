"""Open WebUI exports: output items, `<details>` blocks, several models at once, files, and what is unusual."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from tests.importers.outlines import convert_file, convert_json, outline
from tests.importers.test_chatgpt import SAMPLES


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    history = {
        "messages": {each["id"]: each for each in messages},
        "currentId": messages[-1]["id"] if messages else None,
    }
    return {"id": "c1", "title": "Tides", "chat": {"history": history}, "created_at": 1700000000, **fields}


def user(key: str, content: str, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": key, "parentId": parent, "role": "user", "content": content, "timestamp": 1700000000, **fields}


def answer(key: str, content: str, parent: str = "u", **fields: Any) -> dict[str, Any]:
    return {"id": key, "parentId": parent, "role": "assistant", "content": content, "timestamp": 1700000001, **fields}


THOUGHT = (
    '<details type="reasoning" done="true"><summary>Thought for 3 seconds</summary>\n&gt; Look\n&gt; here\n</details>\n'
)
CALL = (
    '<details type="tool_calls" done="true" id="c" name="tide" arguments="&quot;{\\&quot;p\\&quot;:1}&quot;" '
    'result="&quot;12:00&quot;"><summary>Tool Executed</summary></details>\n'
)
U = user("u", "Hi")
CASES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "plain": ([U, answer("a", "Hello", done=True)], ["u: Hi", "  a*: Hello"]),
    "two models": (
        [U, answer("b", "Two", modelIdx=1), answer("a", "One", modelIdx=0)],
        ["u: Hi", "  a: Two", "  a*: One"],
    ),
    "reasoning markup": ([U, answer("a", THOUGHT + "Noon")], ["u: Hi", "  a*: (Look\nhere) Noon"]),
    "tool markup": ([U, answer("a", CALL + "Noon")], ["u: Hi", '  a*: <tide {"p": 1} = 12:00> Noon']),
    "tool markup without a result": (
        [U, answer("a", CALL.replace('done="true"', 'done="false"'))],
        ["u: Hi", '  a*: <tide {"p": 1} = unknown>'],
    ),
    "markup that is never closed": ([U, answer("a", THOUGHT[:40])], ["u: Hi", f"  a*: {THOUGHT[:40]}"]),
    "other details stay text": (
        [U, answer("a", "<details><summary>More</summary>x</details>")],
        ["u: Hi", "  a*: <details><summary>More</summary>x</details>"],
    ),
    "output items win": (
        [U, answer("a", CALL, output=[
            {"type": "function_call", "call_id": "c", "name": "tide", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "noon"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "At noon"}]},
        ])],
        ["u: Hi", "  a*: <tide {} = noon> At noon"],
    ),
    "error": ([U, answer("a", "", error={"content": "Connection error."})], ["u: Hi", "  a*: !failed"]),
    "not done": ([U, answer("a", "At 12:5", done=False)], ["u: Hi", "  a*: At 12:5 !interrupted"]),
    "system message": (
        [{"id": "s", "parentId": None, "role": "system", "content": "Be brief."}, user("u", "Hi", "s")],
        ["u*: Hi"],
    ),
    "inline image": (
        [user("u", "Hi", files=[{"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="}])],
        ["u*: Hi [image.png]"],
    ),
    "file on their server": (
        [user("u", "Hi", files=[{"type": "file", "id": "f", "name": "n.pdf"}])],
        ["u*: Hi [n.pdf]"],
    ),
    "unknown parent": ([U, answer("a", "Hello", "gone")], ["u: Hi", "a*: Hello"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_chats(case: str, tmp_path: Path) -> None:
    """Each shape of a chat becomes the tree that Open WebUI shows."""
    messages, expected = CASES[case]
    ([section], _) = convert_json([chat(*messages)], tmp_path / "chats.json")
    assert outline(section) == expected


def test_the_sample() -> None:
    """The sample export: two models, an image, a text file, a tool and an error."""
    [section], _ = convert_file(SAMPLES / "openwebui-chats-export.json")
    assert outline(section) == [
        "u: When is high tide? [image.png] [notes.txt]",
        '  a: (Look it up.) <get_tide {"place": "Brest"} = 12:00> At 12:00.',
        "    u: And tomorrow?",
        "      a*: !failed",
        "  a: Noon.",
    ]
    session = section.session
    assert (session.pinned, session.tags, session.system) == (True, ("sea",), "Be brief.")
    assert section.messages[3].error is not None
    assert section.messages[3].error.message == "Connection error."


def test_single_chat_and_folder(tmp_path: Path) -> None:
    """A chat downloaded by itself has no envelope; a folder becomes a project."""
    ([single], _) = convert_json(chat(U)["chat"] | {"title": "Alone"}, tmp_path / "chat.json")
    assert single.session.title == "Alone"
    ([inside], _) = convert_json([chat(U, folder_id="0123456789", archived=True)], tmp_path / "chats.json")
    assert (inside.session.project, inside.session.archived) == ("Open WebUI folder 01234567", True)


def test_malformed(tmp_path: Path) -> None:
    """An error names the message that is not an object."""
    broken = {"chat": {"history": {"messages": {"m": 3}}}}
    with pytest.raises(InvalidInputError, match=r"item 2 \(line 1\), field history\.messages\.m: expected an object"):
        convert_json([chat(U), broken], tmp_path / "chats.json")
