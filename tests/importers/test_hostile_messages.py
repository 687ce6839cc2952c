"""Messages made to take very much time or memory: each step is bounded, and imports can be stopped."""

import itertools
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.core.parts import ReasoningPart, TextPart
from holdfast.core.session_limits import MAX_PARTS
from holdfast.importers import answer_parts, chatgpt, librechat, open_webui, session_builder
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.fields import decode_data_url, parse_arguments
from holdfast.importers.session_builder import SessionBuilder
from holdfast.importers.sources import convert
from tests.importers.hermes_home import write_journal, write_webui
from tests.importers.instruction_count import grows_linearly
from tests.importers.outlines import convert_file, convert_json, outline
from tests.importers.test_chatgpt import conversation, node
from tests.importers.test_hostile_sources import open_webui as open_webui_chat


def peak_of(work: Callable[[], object]) -> int:
    """The most memory that it takes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# ---- trees ----


def checks(path: Path, chat: Any) -> int:
    """How often the import asks whether to stop."""
    path.write_text(json.dumps([chat]))
    calls = itertools.count()
    convert(path, "chatgpt", list, lambda done, total: None, check=lambda: next(calls))
    return next(calls)


def test_parents_that_form_a_cycle_end(tmp_path: Path) -> None:
    """The nearest shown ancestor of the current node is looked for once around the cycle, not once for each node."""
    shown = [node(f"u{n}", "root", "user", "x") for n in range(200)]
    chat = conversation(*shown, node("a", "b", "assistant", "x"), node("b", "a", "assistant", "x"))
    path = tmp_path / "conversations.json"
    assert checks(path, {**chat, "current_node": "a"}) - checks(path, {**chat, "current_node": "u0"}) < 10


def test_the_search_for_the_current_node_can_be_stopped(tmp_path: Path) -> None:
    """It can be as long as the chat."""
    hidden = [node(f"a{n}", f"a{n + 1}", "system", "x") for n in range(200)]
    chat = conversation(node("u", "root", "user", "x"), *hidden)
    path = tmp_path / "conversations.json"
    assert checks(path, {**chat, "current_node": "a0"}) - checks(path, {**chat, "current_node": "u"}) >= 200


# ---- parts ----


def many_parts(app: str, count: int) -> Any:
    """A chat with one answer, or one question, of this many parts."""
    texts = [f"{n}" for n in range(count)]
    match app:
        case "chatgpt":
            return [conversation(node("u", "root", "user", {"content_type": "text", "parts": texts}))]
        case "chatgpt answer":
            nodes = [node(text, texts[n - 1] if n else "root", "assistant", "x") for n, text in enumerate(texts)]
            return [conversation(*nodes)]
        case "claude":
            content = [{"type": "text", "text": text} for text in texts]
            return [{"uuid": "a", "chat_messages": [{"uuid": "m", "sender": "human", "content": content}]}]
        case "open-webui":
            output = [{"type": "message", "content": text} for text in texts]
            return open_webui_chat({"output": output})
        case "librechat":
            content = [{"type": "text", "text": text} for text in texts]
            return [{"conversationId": "a", "messages": [{"messageId": "m", "content": content}]}]
        case _:
            rows = [{"role": "assistant", "content": text} for text in texts]
            return {"session_id": "a", "messages": [{"role": "user", "content": "x"}, *rows]}


@pytest.mark.parametrize("app", ["chatgpt", "chatgpt answer", "claude", "open-webui", "librechat", "hermes-webui"])
def test_the_parts_of_a_message_are_limited(tmp_path: Path, app: str) -> None:
    """Pages show all of them."""
    path = tmp_path / "conversations.json"
    [section], _ = convert_json(many_parts(app, MAX_PARTS), path)
    assert len(section.messages[-1].parts) == MAX_PARTS
    with pytest.raises(InvalidInputError, match="has a message of more than 10000 parts"):
        convert_json(many_parts(app, MAX_PARTS + 1), path)


def test_the_answers_to_a_message_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages name all of them."""
    monkeypatch.setattr(session_builder, "MAX_SIBLINGS", 3)
    path = tmp_path / "conversations.json"
    question = node("u", "root", "user", "x")
    answers = [node(f"a{n}", "u", "assistant", f"{n}") for n in range(4)]
    [section], _ = convert_json([conversation(question, *answers[:3])], path)
    assert len(section.messages) == 4
    with pytest.raises(InvalidInputError, match="has more than 3 answers to one message"):
        convert_json([conversation(question, *answers)], path)


def test_files_of_a_chat_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is held in memory until the chat is written; the same file again is not another."""
    monkeypatch.setattr(session_builder, "MAX_FILES", 3)
    builder = SessionBuilder("app", "id", lambda item, reason: None)
    for n in (1, 2, 3, 3):
        builder.add_missing_file(f"{n}")
    with pytest.raises(InvalidInputError, match="has more than 3 files"):
        builder.add_missing_file("4")


VALUES = [{"a": [0] * 50, "b": "x" * 1000}]
ADD: dict[str, Callable[[AnswerParts], object]] = {
    "text": lambda answer: answer.add_text("x" * 3000),
    "reasoning": lambda answer: answer.add_reasoning("x" * 3000),
    "arguments": lambda answer: answer.add_call("", "f", VALUES),
    "result": lambda answer: answer.add_result("c", "f", VALUES),
}


def repeat(count: int, work: Callable[[], object]) -> None:
    for _ in range(count):
        work()


@pytest.mark.parametrize("kind", list(ADD))
def test_an_answer_of_many_messages_is_limited(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Its texts and the values of its tools are held together."""
    monkeypatch.setattr(answer_parts, "MAX_LINE", 20_000)
    answer = AnswerParts("Chat")
    answer.add_call("c", "f", {})
    repeat(4, lambda: ADD[kind](answer))
    with pytest.raises(InvalidInputError, match="Chat: has a message of more than 20000 bytes"):
        repeat(3, lambda: ADD[kind](answer))


def test_repeated_reasoning_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although it does not identify a message."""
    monkeypatch.setattr(session_builder, "MAX_SESSION", 20_000)
    builder = SessionBuilder("app", "id", lambda item, reason: None)
    keys = itertools.count()
    parts = [ReasoningPart("x" * 1000)]
    with pytest.raises(InvalidInputError, match="is larger than 20000 bytes"):
        repeat(20, lambda: builder.add("assistant", None, parts, key=str(next(keys))))


def test_nested_replies_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each root is one value, and all are held until the chat is complete. Replies in a list are not."""
    reply = {"messageId": "r", "text": "x" * 1000}
    nested = [{"messageId": f"{n}", "text": "x", "children": [{**reply, "messageId": f"r{n}"}]} for n in range(20)]
    chat = [{"conversationId": "a", "messagesTree": nested}]
    convert_json(chat, tmp_path / "chat.json")
    monkeypatch.setattr(librechat, "_MAX_NESTED", 20_000)
    with pytest.raises(InvalidInputError, match="nested replies of more than 20000 bytes"):
        convert_json(chat, tmp_path / "chat.json")
    flat = [{**reply, "messageId": f"{n}", "parentMessageId": None} for n in range(50)]
    convert_json([{"conversationId": "a", "messages": flat}], tmp_path / "chat.json")


# ---- texts ----


def cited(parts: int, references: int, marks: int = 1) -> Any:
    found = [{"matched_text": f"\ue200c{n}\ue201", "alt": f"[{n}]"} for n in range(references)]
    content = {"content_type": "text", "parts": ["\ue200c0\ue201" * marks] * parts}
    return [conversation(node("a", "root", "assistant", content, metadata={"content_references": found}))]


def test_citations_of_many_parts_are_read_in_linear_time(tmp_path: Path) -> None:
    """The references of a message are read once and not for each of its parts."""
    path = tmp_path / "conversations.json"
    assert grows_linearly(lambda count: convert_json(cited(count, count), path))
    [section], _ = convert_json(cited(2, 2), path)
    assert outline(section) == ["a*: [0] [0]"]


def test_citations_of_a_message_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In number and in length, over all its parts."""
    path = tmp_path / "conversations.json"
    monkeypatch.setattr(chatgpt, "_MAX_CITATIONS", 100)
    convert_json(cited(10, 1, 10), path)
    with pytest.raises(InvalidInputError, match="are cited more than 100 times"):
        convert_json(cited(11, 1, 10), path)
    monkeypatch.setattr(chatgpt, "MAX_LINE", 25)
    with pytest.raises(InvalidInputError, match="have more than 25 characters"):
        convert_json(cited(10, 1), path)


def test_a_quotation_loses_one_mark_in_each_line(tmp_path: Path) -> None:
    """And nothing else."""
    content = '<details type="reasoning">\n> a\r\n>\n>> b\n > c\n>  d\n</details>'
    [section], _ = convert_json(open_webui_chat({"content": content}), tmp_path / "chats.json")
    [part] = section.messages[0].parts
    assert part == ReasoningPart("a\n\n> b\n > c\n d")


BLOCKS = {"reasoning": "> a\n", "code_interpreter": "&#9731;"}


@pytest.mark.parametrize("kind", list(BLOCKS))
def test_a_block_takes_no_more_memory_than_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """No list of its lines or references is made: each item takes fifty bytes."""
    monkeypatch.setattr(open_webui, "_MAX_REFERENCES", 1000)
    content = f'<details type="{kind}">{BLOCKS[kind] * 200_000}</details>'
    chat = open_webui_chat({"content": content})
    assert peak_of(lambda: convert_json(chat, tmp_path / "chats.json")) < 12 * len(content)


ATTRIBUTES = 'a="" ' * 200_000


def test_attributes_that_nobody_needs_take_no_memory(tmp_path: Path) -> None:
    """Only those of a tool call are kept."""
    content = f'<details type="tool_calls" {ATTRIBUTES} name="f">x</details>'
    chat = open_webui_chat({"content": content})
    assert peak_of(lambda: convert_json(chat, tmp_path / "chats.json")) < 12 * len(content)


def test_a_title_is_cut_before_its_words_are_split() -> None:
    """Words take much more memory than the text."""
    title = "a \0 b" * 200_000

    def make() -> None:
        assert SessionBuilder("app", "id", lambda item, reason: None, title=title).title.startswith("a ba ba")

    assert peak_of(make) < len(title)


@pytest.mark.parametrize("url", ["data:" + ";" * 2_000_000 + ",x", "data:text/plain," + "%41" * 1_500_000])
def test_a_data_url_of_many_pieces_is_none(url: str) -> None:
    """They would be a list of them."""
    assert peak_of(lambda: decode_data_url(url)) < 3 * len(url)
    assert decode_data_url(url) is None


def test_arguments_of_many_values_stay_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON inside of a string is counted like that around it."""
    monkeypatch.setattr("holdfast.importers.json_objects.MAX_STRUCTURE", 10_000)
    text = json.dumps({"a": [[]] * 100_000})
    assert parse_arguments(text) == {"input": text}
    assert parse_arguments(json.dumps({"a": "[]" * 100_000})) == {"a": "[]" * 100_000}


def test_a_journal_is_read_line_by_line(tmp_path: Path) -> None:
    """Its lines are not held together, and reading them can be stopped."""
    root = write_webui(tmp_path, {"session_id": "s", "messages": [{"role": "user", "content": "x"}]})
    write_journal(root, "s", "x", ("token", {"text": "Hello"}))
    [journal] = root.rglob("x.jsonl")
    journal.write_bytes(b"\n" * 5000 + journal.read_bytes())
    session = root / "sessions" / "s.json"
    session.write_text(json.dumps({**json.loads(session.read_text()), "active_stream_id": "x"}))
    calls = itertools.count()
    convert(root, "hermes-webui", list, lambda done, total: None, check=lambda: next(calls))
    assert next(calls) > 5000
    [section], _ = convert_file(root, "hermes-webui")
    assert section.messages[-1].parts == (TextPart("Hello"),)
