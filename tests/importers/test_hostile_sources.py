"""Sources made to exhaust the server: time and memory stay in proportion to their size."""

import itertools
import json
import sqlite3
import time
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.importers import chatgpt, hermes_webui, session_builder
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.chat_rows import ChatRow, join_segments, note_rows
from holdfast.importers.guarded_database import GuardedDatabase
from holdfast.importers.session_builder import SessionBuilder
from holdfast.importers.source_files import SourceFiles
from holdfast.importers.sources import SourceApp, convert
from tests.importers.hermes_home import write_journal, write_webui
from tests.importers.hostile_files import SESSIONS, write_archive, write_database, write_endless_pages
from tests.importers.instruction_count import grows_linearly
from tests.importers.outlines import convert_file, convert_json, outline
from tests.importers.test_chatgpt import conversation, node


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
    assert len(join_segments(note_rows(rows))) == 2 * count


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


# ---- ZIP archives ----


@pytest.mark.parametrize(("entries", "problem"), [(250_000, "200000 files"), (1_500_000, "a directory of more than")])
def test_the_directory_of_an_archive_is_bounded_before_it_is_read(tmp_path: Path, entries: int, problem: str) -> None:
    """Too many entries are refused without making an object of each: at most the directory itself is in memory."""
    path = tmp_path / "large.zip"
    write_archive(path, entries)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError, match=problem):
            convert_file(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 * 1024 * 1024


# ---- databases ----

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
FTS = "USING fts5(id, session_id, role, content, content='v', content_rowid='id');"
VIEW = f"CREATE VIEW v AS {ENDLESS} SELECT x AS id, 's1' AS session_id, 'user' AS role, 'hi' AS content FROM n;"
RENAMED = (
    "PRAGMA writable_schema = ON;"
    "UPDATE sqlite_master SET sql = replace(sql, 'CREATE VIRTUAL TABLE', 'CREATE/**/VIRTUAL TABLE'), rootpage = 2 "
    "WHERE name = 'messages';"
)


@pytest.mark.parametrize(
    "script",
    [
        f"{SESSIONS} {VIEW} CREATE VIRTUAL TABLE messages {FTS}",
        f"{SESSIONS} {VIEW} CREATE VIRTUAL TABLE messages {FTS} {RENAMED}",
        f"{SESSIONS} {VIEW.replace('CREATE VIEW v', 'CREATE VIEW messages')}",
        f"{SESSIONS} CREATE TABLE messages(id, session_id, role, content AS (zeroblob(100000000)));",
    ],
    ids=["virtual", "disguised", "view", "computed"],
)
def test_a_table_that_computes_is_refused(tmp_path: Path, script: str) -> None:
    """Virtual tables, views and computed columns are not read: they can be endless."""
    path = tmp_path / "state.db"
    write_database(path, script)
    with pytest.raises(InvalidInputError, match="messages lacks"):
        convert_file(path)


def test_endless_pages_end_at_the_limit_of_work(tmp_path: Path) -> None:
    """A query takes a bounded number of steps, whatever the pages of the file refer to."""
    path = tmp_path / "state.db"
    write_endless_pages(path)
    with closing(sqlite3.connect(path)) as connection:
        database = GuardedDatabase(connection, "state.db", 0, lambda: None, max_work=100_000)
        with pytest.raises(InvalidInputError, match="takes too long to read"):
            list(database.query("SELECT id FROM messages WHERE session_id = 's1'"))


def test_a_query_ends_at_its_deadline(tmp_path: Path) -> None:
    """Steps that take long do not add up for more than a minute."""
    path = tmp_path / "state.db"
    write_endless_pages(path)
    seconds = itertools.count()
    with closing(sqlite3.connect(path)) as connection:
        database = GuardedDatabase(connection, "state.db", 0, lambda: None, now=lambda: float(next(seconds)))
        with pytest.raises(InvalidInputError, match="takes too long to read"):
            list(database.query("SELECT id FROM messages WHERE session_id = 's1'"))
    assert next(seconds) < 100


class LeftError(Exception): ...


def test_reading_a_database_stops_when_the_client_leaves(tmp_path: Path) -> None:
    """The check runs inside a query, and its exception is that of the conversion."""
    path = tmp_path / "state.db"
    write_endless_pages(path)
    left = itertools.count()

    def check() -> None:
        if next(left) > 3:
            raise LeftError

    with pytest.raises(LeftError):
        convert(path, None, list, lambda done, total: None, check=check)
    assert next(left) < 10


CHAT_OF: dict[SourceApp, Any] = {
    "chatgpt": [conversation(*(node(str(n), "root", "user", "x") for n in range(50)))],
    "claude": [{"uuid": "a", "chat_messages": [{"uuid": str(n), "sender": "human", "text": "x"} for n in range(50)]}],
    "open-webui": [{"id": "a", "chat": {"history": {"messages": {str(n): {"role": "user"} for n in range(50)}}}}],
    "librechat": [{"conversationId": "a", "messages": [{"messageId": str(n), "text": "x"} for n in range(50)]}],
    "hermes": [{"id": "a", "source": "cli", "messages": [{"role": "user", "content": str(n)} for n in range(50)]}],
    "hermes-webui": {"session_id": "a", "messages": [{"role": "user", "content": str(n)} for n in range(50)]},
}


@pytest.mark.parametrize("app", list(CHAT_OF))
def test_reading_a_file_stops_when_the_client_leaves(tmp_path: Path, app: SourceApp) -> None:
    """The check runs for each message, and once more for each line that is written."""
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(CHAT_OF[app]))
    calls = itertools.count()
    convert(path, app, lambda lines: next(iter(lines)), lambda done, total: None, check=lambda: next(calls))
    converted = next(calls)
    assert converted > 50
    convert(path, app, list, lambda done, total: None, check=lambda: next(calls))
    assert next(calls) > converted + 100


# ---- what is repeated ----


def test_branches_that_repeat_a_text_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that forks often becomes as many messages; their texts count together before they are made."""
    forks = [node(f"f{n}", "a", "assistant", "x") for n in range(50)]
    chat = [conversation(node("u", "root", "user", "Hi"), node("a", "u", "assistant", "y" * 1000), *forks)]
    convert_json(chat, tmp_path / "conversations.json")
    monkeypatch.setattr(session_builder, "MAX_SESSION", 20_000)
    with pytest.raises(InvalidInputError, match="is larger than 20000 bytes"):
        convert_json(chat, tmp_path / "conversations.json")


def test_a_citation_that_is_repeated_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short mark stands for a long text, as often as the message says."""
    metadata = {"content_references": [{"matched_text": "\ue200c\ue201", "alt": "x" * 1000}]}
    chat = [conversation(node("a", "root", "assistant", "\ue200c\ue201" * 50, metadata=metadata))]
    [section], _ = convert_json(chat, tmp_path / "conversations.json")
    assert outline(section) == [f"a*: {'x' * 50_000}"]
    monkeypatch.setattr(chatgpt, "MAX_LINE", 20_000)
    with pytest.raises(InvalidInputError, match="content_references"):
        convert_json(chat, tmp_path / "conversations.json")


def webui_chain(length: int) -> list[dict[str, Any]]:
    """Sessions of Hermes WebUI that continue each other."""
    return [
        {
            "session_id": f"s{n}",
            "parent_session_id": f"s{n - 1}",
            "pre_compression_snapshot": n < length - 1,
            "compression_anchor_summary": "x" * 100,
            "messages": [{"role": "user", "content": f"u{n}", "attachments": [{"name": f"f{n}"}, {"name": "same"}]}],
        }
        for n in range(length)
    ]


def test_attachments_of_a_long_chain_are_found_in_linear_time(tmp_path: Path) -> None:
    """A name is looked up in the directories that have it, not in those of every session."""

    def run(count: int) -> None:
        root = write_webui(tmp_path / str(count), *webui_chain(count))
        for n in range(count):
            (root / "attachments" / f"s{n}").mkdir(parents=True)
            (root / "attachments" / f"s{n}" / "same").write_text(f"{n}")
        [section], _ = convert_file(root, "hermes-webui")
        assert len(section.files) == count + 1

    assert grows_linearly(run, 60)


def test_a_long_chain_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a chain count together, for they are held together, and so do the summaries between them."""
    root = write_webui(tmp_path, *webui_chain(20))
    convert_file(root, "hermes-webui")
    for most, problem in ((2000, "is larger than 2000 bytes with its beginning"), (1000, "is larger than 1000")):
        monkeypatch.setattr(hermes_webui, "MAX_SESSION", most)
        with pytest.raises(InvalidInputError, match=problem):
            convert_file(root, "hermes-webui")
    summary = {**webui_chain(20)[-1], "compression_anchor_summary": "x" * 10_000}
    write_webui(tmp_path, summary)
    monkeypatch.setattr(hermes_webui, "MAX_SESSION", 100_000)
    with pytest.raises(InvalidInputError, match="compression_anchor_summary"):
        convert_file(root, "hermes-webui")


def test_journals_are_found_by_their_path(tmp_path: Path) -> None:
    """Each unanswered turn finds its run journal without a search through all of them."""

    def store(count: int) -> hermes_webui.WebUiStore:
        root = write_webui(tmp_path / str(count))
        for n in range(count):
            write_journal(root, f"s{n}", "x", ("token", {"text": "Hello"}))
        return hermes_webui.WebUiStore(SourceFiles(root))

    stores = {count: store(count) for count in (50, 200)}

    def run(count: int) -> None:
        assert all(stores[count].read_journal(f"s{n}", "x") for n in range(count))

    assert grows_linearly(run, 50)
