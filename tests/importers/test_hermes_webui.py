"""Hermes WebUI: sessions as files, partial answers, run journals, compacted chains and archives of the directory."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from tests.importers.hermes_home import call, write_journal, write_webui
from tests.importers.outlines import convert_file, convert_json, outline
from tests.importers.test_chatgpt import SAMPLES

SID = "3f9c1d2e4a5b"


def session(*messages: dict[str, Any], sid: str = SID, **fields: Any) -> dict[str, Any]:
    return {"session_id": sid, "title": "Tides", "created_at": 1.7e9, "messages": list(messages), **fields}


def user(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": 1.7e9, **fields}


def answer(text: Any = "", **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "_ts": 1.7e9, **fields}


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "plain": (session(user("Hi"), answer("Hello")), ["u: Hi", "  a*: Hello"]),
    "list of parts": (session(user([{"type": "text", "text": "Hi"}])), ["u: Hi", "  a*: !interrupted"]),
    "tool": (
        session(
            user("Hi"),
            answer(tool_calls=[call("c", command="x")]),
            {**answer("1"), "role": "tool", "tool_call_id": "c"},
        ),
        ["u: Hi", '  a*: <terminal {"command": "x"} = 1>'],
    ),
    "reasoning": (session(user("Hi"), answer("Yes", reasoning_content="Hm")), ["u: Hi", "  a*: (Hm) Yes"]),
    "partial": (session(user("Hi"), answer("At 12", _partial=True)), ["u: Hi", "  a*: At 12 !interrupted"]),
    "partial tool": (
        session(user("Hi"), answer("", _partial=True, _partial_tool_calls=[{"name": "t", "args": {"a": 1}}])),
        ["u: Hi", '  a*: <t {"a": 1} = unknown> !interrupted'],
    ),
    "notice of an interruption": (
        session(user("Hi"), answer("At"), answer("**Interrupted.**", _error=True, type="interrupted")),
        ["u: Hi", "  a*: At !interrupted"],
    ),
    "notice of an error": (session(user("Hi"), answer("No key", _error=True)), ["u: Hi", "  a*: !failed"]),
    "system row": (session({"role": "system", "content": "x"}, user("Hi"), answer("Yes")), ["u: Hi", "  a*: Yes"]),
    "pending question": (
        session(user("Hi"), answer("Yes"), pending_user_message="More"),
        ["u: Hi", "  a: Yes", "    u: More", "      a*: !interrupted"],
    ),
    "pending question that is already there": (
        session(user("More"), pending_user_message=" More "),
        ["u: More", "  a*: !interrupted"],
    ),
    "attachment elsewhere": (
        session(user("Hi", attachments=[{"name": "passwd", "path": "/etc/passwd"}]), answer("Yes")),
        ["u: Hi [passwd]", "  a*: Yes"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_sessions(case: str, tmp_path: Path) -> None:
    """Each shape of a session file becomes what the page shows; files outside of the source are never read."""
    item, expected = CASES[case]
    ([section], _) = convert_json(item, tmp_path / "session.json")
    assert outline(section) == expected
    assert all(file.missing for file in section.files.values())


def test_the_sample() -> None:
    """The sample session: a tool with its result, and an answer cut off by a restart."""
    [section], _ = convert_file(SAMPLES / "hermes-webui-session.json")
    assert [line.strip()[:40] for line in outline(section)] == [
        "u: When is high tide? [chart.png]",
        'a: (Look it up.) <terminal {"command": "',
        "u: And tomorrow?",
        "a*: At 12:5 !interrupted",
    ]


def test_run_journal(tmp_path: Path) -> None:
    """What the page had shown of an unanswered turn is read from its journal, with tools in their last known state."""
    root = write_webui(tmp_path / "webui", session(user("Hi"), pending_user_message="Hi", active_stream_id="s"))
    write_journal(
        root, SID, "s",
        ("reasoning", {"text": "Hm"}), ("token", {"text": "Let me "}), ("token", {"text": "look."}),
        ("tool", {"name": "terminal", "args": {"command": "tide"}}),
        ("tool_complete", {"name": "terminal", "preview": "12:00"}),
        ("tool", {"name": "fetch", "args": {}}), ("interim_assistant", {"text": "No", "already_streamed": True}),
        tail='{"event": "token", "payl',
    )  # fmt: skip
    [section], _ = convert_file(root)
    assert outline(section)[1] == (
        '  a*: (Hm) Let me look. <terminal {"command": "tide"} = 12:00> <fetch {} = unknown> !interrupted'
    )


def test_directory_and_archive_are_the_same(tmp_path: Path) -> None:
    """Projects, pins and attachments are found in the directory and in a ZIP archive of it; backups are no sessions."""
    item = session(
        user("Hi", attachments=[{"name": "n.txt"}]), answer("Yes"), pinned=True, archived=True, project_id="p"
    )
    root = write_webui(tmp_path / "webui", item, projects=[{"project_id": "p", "name": "Sailing"}])
    (root / "sessions" / f"{SID}.json.bak").write_text("{")
    (root / "attachments" / SID).mkdir(parents=True)
    (root / "attachments" / SID / "n.txt").write_text("notes")
    with zipfile.ZipFile(tmp_path / "webui.zip", "w") as archive:
        for path in root.rglob("*"):
            archive.write(path, f"webui/{path.relative_to(root)}")
    for source in (root, tmp_path / "webui.zip"):
        [section], report = convert_file(source)
        assert (section.session.pinned, section.session.archived, section.session.project) == (True, True, "Sailing")
        assert [(file.name, file.missing) for file in section.files.values()] == [("n.txt", False)]
        assert report.skipped == []


def test_a_compacted_chain(tmp_path: Path) -> None:
    """A snapshot from before a compaction is the beginning of the session that goes on."""
    before = session(user("One"), answer("1"), sid="aaaaaaaaaaaa", pre_compression_snapshot=True)
    after = session(
        user("One"), answer("1"), user("Two"), answer("2"),
        sid="bbbbbbbbbbbb", parent_session_id="aaaaaaaaaaaa", compression_anchor_summary="They counted.",
    )  # fmt: skip
    [section], _ = convert_file(write_webui(tmp_path / "webui", before, after))
    assert [line.strip() for line in outline(section)] == ["u: One", "a: 1", "u: Two", "a*: 2"]
    assert [each.summary for each in section.compactions] == ["They counted."]


def test_malformed(tmp_path: Path) -> None:
    """An error names the file and the message."""
    root = write_webui(tmp_path / "webui", session(user("Hi"), sid="a1"), {**session(sid="b1"), "messages": [5]})
    with pytest.raises(
        InvalidInputError, match=r"sessions/b1\.json, field messages\.0: expected an object, found a number"
    ):
        convert_file(root)
