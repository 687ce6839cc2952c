"""Hermes Agent: `state.db`, compacted chains, rewound rows, exports, and the files of Hermes WebUI beside it."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.importers import hermes
from tests.importers.hermes_home import SUMMARY, HermesHome, call, write_journal, write_webui
from tests.importers.outlines import convert_file, outline

SID = "20260101_000000_aaaaaa"
NEXT = "20260102_000000_bbbbbb"
BROKEN_CONTENT = (
    "INSERT INTO messages (session_id, role, content, timestamp) "
    "SELECT id, 'user', char(0) || 'json:[', 1 FROM sessions"
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[HermesHome]:
    made = HermesHome(tmp_path / "hermes")
    yield made
    made.close()


def only(home: HermesHome) -> list[str]:
    [section], _ = convert_file(home.path)
    return outline(section)


def test_tools_reasoning_and_images(home: HermesHome) -> None:
    """Rows up to the next question are one answer, in order; an image in a data URL becomes a file."""
    home.session(SID, title="Tides")
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    home.add(SID, "user", [{"type": "text", "text": "Hi"}, url])
    home.add(SID, "assistant", "", reasoning="Hm", tool_calls=[call("c1", command="tide")])
    home.add(SID, "tool", "12:00", tool_call_id="c1", tool_name="terminal")
    home.add(SID, "assistant", "Noon")
    home.add(SID, "user", "Thanks")
    home.add(SID, "assistant", "Welcome")
    [section], _ = convert_file(home.path)
    assert outline(section) == [
        "u: Hi [image.png]",
        '  a: (Hm) <terminal {"command": "tide"} = 12:00> Noon',
        "    u: Thanks",
        "      a*: Welcome",
    ]
    assert (section.session.title, section.messages[1].model) == ("Tides", "m")


def test_calls_without_results(home: HermesHome) -> None:
    """A call without a result did not run if a question follows, and has an unknown outcome at the end."""
    home.session(SID)
    home.add(SID, "user", "Hi")
    home.add(SID, "assistant", "", tool_calls=[call("c1")])
    home.add(SID, "user", "Again")
    home.add(SID, "assistant", "", tool_calls=[call("c2")])
    assert only(home) == [
        "u: Hi",
        "  a: <terminal {} = not_run>",
        "    u: Again",
        "      a*: <terminal {} = unknown>",
    ]


def test_an_unanswered_question_is_interrupted(home: HermesHome) -> None:
    """A process that was killed leaves the question alone; its answer is an interrupted one."""
    home.session(SID)
    home.say(SID, "Hi", "Hello", "More")
    assert only(home) == ["u: Hi", "  a: Hello", "    u: More", "      a*: !interrupted"]


def test_rewound_rows_are_a_branch(home: HermesHome) -> None:
    """Rows that an undo took back are beside those that followed, in the middle and at the end."""
    home.session(SID)
    home.say(SID, "Hi", "Hello")
    home.say(SID, "Wrong", "Oops", active=0)
    home.say(SID, "Right", "Yes")
    home.say(SID, "Last", "Gone", active=0)
    assert only(home) == [
        "u: Hi",
        "  a: Hello",
        "    u: Wrong",
        "      a: Oops",
        "    u: Right",
        "      a*: Yes",
        "        u: Last",
        "          a: Gone",
    ]


def test_order_is_that_of_the_ids(home: HermesHome) -> None:
    """A clock that steps back does not change the order."""
    home.session(SID)
    home.add(SID, "user", "Hi", timestamp=2000.0)
    home.add(SID, "assistant", "Hello", timestamp=1000.0)
    assert only(home) == ["u: Hi", "  a*: Hello"]


def test_a_chain_is_one_session(home: HermesHome) -> None:
    """A compacted session goes on in its child: copies are dropped, and the summary is a compaction."""
    home.session(SID, title="Long", end_reason="compression")
    home.say(SID, "One", "1", "Two", "2", "Three", "3")
    home.session(NEXT, parent_session_id=SID, title="Long #2")
    home.say(NEXT, "One", "1")
    home.add(NEXT, "user", SUMMARY.format("They counted."))
    home.say(NEXT, "Three", "3", "Four", "4")
    [section], _ = convert_file(home.path)
    assert [line.strip() for line in outline(section)] == [
        *("u: One", "a: 1", "u: Two", "a: 2", "u: Three", "a: 3", "u: Four", "a*: 4"),
    ]
    [compaction] = section.compactions
    assert (compaction.summary, compaction.message_id) == ("They counted.", section.messages[5].id)
    assert (section.session.title, section.origin and section.origin.id) == ("Long", SID)


def test_compaction_in_place(home: HermesHome) -> None:
    """A session that keeps its id is compacted twice: archived rows are the conversation, copies are dropped."""
    home.session(SID)
    home.say(SID, "One", "1", "Two", "2", active=0, compacted=1)
    home.add(SID, "user", SUMMARY.format("First."), active=0, compacted=1)
    home.say(SID, "Two", "2", "Three", "3", active=0, compacted=1)
    home.add(SID, "assistant", SUMMARY.format("Second."))
    home.say(SID, "Three", "3", "Four", "4")
    [section], _ = convert_file(home.path)
    said = [line.strip() for line in outline(section)]
    assert said == ["u: One", "a: 1", "u: Two", "a: 2", "u: Three", "a: 3", "u: Four", "a*: 4"]
    assert [each.summary for each in section.compactions] == ["First.", "Second."]


def test_a_question_repeated_at_a_seam(home: HermesHome) -> None:
    """Without a summary, the question that the child repeats is there once."""
    home.session(SID, end_reason="compression")
    home.say(SID, "One", "1", "Two")
    home.session(NEXT, parent_session_id=SID)
    home.say(NEXT, "Two", "2")
    assert [line.strip() for line in only(home)] == ["u: One", "a: 1", "u: Two", "a*: 2"]


def test_a_database_without_indexes(home: HermesHome) -> None:
    """Without Hermes' indexes the messages of each session are found as well; a large one is refused by its work."""
    for n in range(20):
        home.session(f"20260101_000000_{n:06x}")
        home.say(f"20260101_000000_{n:06x}", "Hi", "Hello")
    home.database.executescript("DROP INDEX idx_messages_session; DROP INDEX idx_messages_session_active")
    sections, _ = convert_file(home.path)
    assert [len(section.messages) for section in sections] == [2] * 20


def test_a_fork_is_a_session_of_its_own(home: HermesHome) -> None:
    """A child that branched off does not continue its parent."""
    home.session(SID, end_reason="compression")
    home.say(SID, "One", "1")
    home.session(NEXT, parent_session_id=SID, model_config=json.dumps({"_branched_from": SID}))
    home.say(NEXT, "One", "1", "Other", "2")
    sections, _ = convert_file(home.path)
    assert [len(each.messages) for each in sections] == [2, 4]


def test_flags_and_empty_sessions(home: HermesHome) -> None:
    """The archive flag is kept, and a session without messages is skipped with the reason."""
    home.session(SID, archived=1)
    home.say(SID, "Hi", "Hello")
    home.session(NEXT, title="Nothing")
    [section], report = convert_file(home.path)
    assert section.session.archived
    assert report.skipped == [(f"Nothing ({NEXT})", "it has no messages")]


def test_profiles_are_named(home: HermesHome) -> None:
    """The chats of a profile are in a home of its own, which the summary names, and which can be imported."""
    home.session(SID)
    home.say(SID, "Hi", "Hello")
    profile = home.path / "profiles" / "work"
    profile.mkdir(parents=True)
    (home.path / "profiles" / "empty").mkdir()
    work = HermesHome(profile)
    work.session(NEXT)
    work.say(NEXT, "Report", "Sure")
    work.close()
    [section], report = convert_file(home.path)
    assert section.origin is not None
    assert section.origin.id == SID
    assert report.skipped == [("Profile work", f"it is a home of its own; import {profile} too")]
    [other], report = convert_file(profile)
    assert (outline(other), report.skipped) == (["u: Report", "  a*: Sure"], [])


def test_the_source_is_not_touched(home: HermesHome) -> None:
    """A database without a writer is read without creating a file beside it, and one with a writer up to its log."""
    home.session(SID)
    home.say(SID, "Hi", "Hello")
    assert only(home) == ["u: Hi", "  a*: Hello"]  # while Hermes has it open, from the write-ahead log
    home.close()
    before = {path.name: path.stat().st_mtime_ns for path in home.path.iterdir()}
    assert list(before) == ["state.db"]
    convert_file(home.path / "state.db")
    assert {path.name: path.stat().st_mtime_ns for path in home.path.iterdir()} == before


def test_json_lines_of_sessions_export(home: HermesHome, tmp_path: Path) -> None:
    """`hermes sessions export` gives the same sessions as the database, chains included."""
    home.session(SID, end_reason="compression")
    home.say(SID, "One", "1", "Two")
    home.session(NEXT, parent_session_id=SID)
    home.say(NEXT, "Two", "2")
    home.database.row_factory = sqlite3.Row
    lines = []
    for session in home.database.execute("SELECT * FROM sessions ORDER BY started_at DESC").fetchall():
        rows = home.database.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session["id"],))
        lines.append(json.dumps({**dict(session), "messages": [dict(row) for row in rows]}))
    path = tmp_path / "sessions.jsonl"
    path.write_text("\n".join(lines) + "\n")
    [exported], report = convert_file(path)
    [stored], _ = convert_file(home.path)
    assert report.app == "hermes"
    assert (outline(exported), exported.messages) == (outline(stored), stored.messages)


def test_web_ui_beside_the_database(home: HermesHome) -> None:
    """Titles, pins, projects, attachments and what was shown of an unfinished answer come from Hermes WebUI."""
    sid = "3f9c1d2e4a5b"
    home.session(sid, title="old")
    home.say(sid, "Hi", "Hello", "More")
    webui = home.path / "webui"
    attachment = {"name": "n.txt", "path": f"/elsewhere/{sid}/n.txt"}
    item: dict[str, Any] = {
        "session_id": sid, "title": "Tides", "pinned": True, "project_id": "p", "active_stream_id": "s1",
        "pending_user_message": "More", "messages": [{"role": "user", "content": "Hi", "attachments": [attachment]}],
    }  # fmt: skip
    other = {"session_id": "aaaaaaaaaaaa", "title": "Only here", "messages": [{"role": "user", "content": "Q"}]}
    write_webui(webui, item, other, projects=[{"project_id": "p", "name": "Sailing"}])
    (webui / "attachments" / sid).mkdir(parents=True)
    (webui / "attachments" / sid / "n.txt").write_text("notes")
    write_journal(webui, sid, "s1", ("token", {"text": "At 12"}), ("token", {"text": ":5"}), tail='{"event": "tok')
    [section, single], report = convert_file(home.path)
    assert outline(section) == ["u: Hi [n.txt]", "  a: Hello", "    u: More", "      a*: At 12:5 !interrupted"]
    session = section.session
    assert (session.title, session.pinned, session.project) == ("Tides", True, "Sailing")
    assert (single.session.title, report.skipped) == ("Only here", [])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("DROP TABLE messages", "is not a state.db of Hermes: messages lacks content, id, role, session_id"),
        ("ALTER TABLE messages RENAME COLUMN role TO part", "messages lacks role"),
        (BROKEN_CONTENT, "message 1 of session 20260101_000000_aaaaaa, field content: is not valid JSON"),
        ("DROP TABLE sessions; CREATE VIEW sessions AS SELECT 1 AS id", "sessions lacks a table"),
    ],
)  # fmt: skip
def test_malformed(change: str, problem: str, home: HermesHome) -> None:
    """A database that is not Hermes', or is damaged, is named with what is wrong."""
    home.session(SID)
    home.database.executescript(change)
    with pytest.raises(InvalidInputError) as caught:
        convert_file(home.path)
    assert f"{home.path / 'state.db'}" in str(caught.value)
    assert problem in str(caught.value)


def test_damaged_database(home: HermesHome) -> None:
    """A file that only begins like a database is refused."""
    home.close()
    path = home.path / "state.db"
    path.write_bytes(path.read_bytes()[:100] + b"x" * 4000)
    with pytest.raises(InvalidInputError, match="cannot be read: "):
        convert_file(path)


def test_a_conversation_that_is_too_large_is_refused(home: HermesHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sessions of a chain count together, for they are held in memory together; the rows count too."""
    home.session(SID, end_reason="compression")
    home.session(NEXT, parent_session_id=SID)
    for sid in (SID, NEXT):
        home.say(sid, "Hi", "x" * 3000)
    monkeypatch.setattr(hermes, "MAX_SESSION", 9000)
    convert_file(home.path)
    monkeypatch.setattr(hermes, "MAX_SESSION", 7000)
    with pytest.raises(InvalidInputError, match=f"state.db, session {SID}: is larger than 7000 bytes"):
        convert_file(home.path)
    monkeypatch.setattr(hermes, "MAX_SESSION", 1000)
    with pytest.raises(InvalidInputError, match=r"state\.db, table sessions: is larger than 1000 bytes"):
        convert_file(home.path)
