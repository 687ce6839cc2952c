"""`holdfast import` of other applications' chats: a second import, chats that grew, and malformed sources."""

import json
import re
import shlex
import shutil
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.terminal import Terminal, as_json, holdfast, ok, refused
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.importers.hermes_home import HermesHome
from tests.importers.test_chatgpt import PNG, SAMPLES, U, conversation, node

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "import.md"


@pytest.fixture(scope="module")
def server(http_forker: ServerForker, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Served(http_forker, tmp_path_factory.mktemp("import") / "data") as served:
        served.ready()
        yield served


def counts(summary: dict[str, Any]) -> tuple[int, int, int, int]:
    return summary["imported"], summary["updated"], summary["unchanged"], summary["messages"]


def shown(server: Served, sid: str) -> list[str]:
    """The text of the shown branch."""
    items = server.call("GET", f"/api/sessions/{sid}/messages")["items"]
    return ["".join(part.get("text", "") for part in item["parts"]) for item in items]


def write(path: Path, *conversations: dict[str, Any]) -> Path:
    path.write_text(json.dumps(conversations))
    return path


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.glob("*.json")))
def test_a_second_import_adds_nothing(sample: str, tmp_path: Path, server: Served) -> None:
    """Each sample is imported once, whatever the number of imports."""
    first = as_json("import", SAMPLES / sample, data=server.data_dir)
    assert first["imported"] + first["unchanged"] == 1  # both LibreChat samples are one conversation
    again = as_json("import", SAMPLES / sample, data=server.data_dir)
    assert counts(again) == (0, 0, 1, 0)
    assert again["skipped"] == first["skipped"]


def test_a_chat_that_grew_goes_on(server: Served, tmp_path: Path) -> None:
    """New messages are added and shown; a title that was changed here stays."""
    file = tmp_path / "conversations.json"
    answer = node("a", "u", "assistant", "Hello")
    more = [node("u2", "a", "user", "More"), node("a2", "u2", "assistant", "Sure")]
    [sid] = as_json(
        "import", write(file, conversation(U, answer, id="grew", conversation_id="grew")), data=server.data_dir
    )["sessions"]
    server.call("PATCH", f"/api/sessions/{sid}", {"title": "Mine"})
    grown = write(file, conversation(U, answer, *more, conversation_id="grew"))
    assert counts(as_json("import", grown, data=server.data_dir)) == (0, 1, 0, 2)
    assert shown(server, sid) == ["Hi", "Hello", "More", "Sure"]
    assert server.call("GET", f"/api/sessions/{sid}")["title"] == "Mine"
    assert counts(as_json("import", grown, data=server.data_dir)) == (0, 0, 1, 0)


def test_a_chat_continued_here_keeps_its_branch(server: Served, tmp_path: Path) -> None:
    """After a turn here, new messages of the source are a branch beside it and the shown branch stays."""
    file = tmp_path / "conversations.json"
    answer = node("a", "u", "assistant", "Hello")
    [sid] = as_json("import", write(file, conversation(U, answer, conversation_id="here")), data=server.data_dir)[
        "sessions"
    ]
    script = json.dumps([{"say": "from here"}])
    server.ended(server.call("POST", f"/api/sessions/{sid}/runs", {"input": script}, 202)["run"]["id"])
    more = node("u2", "a", "user", "More")
    grown = write(file, conversation(U, answer, more, conversation_id="here"))
    assert counts(as_json("import", grown, data=server.data_dir)) == (0, 1, 0, 1)
    assert shown(server, sid) == ["Hi", "Hello", script, "from here"]
    items = server.call("GET", f"/api/sessions/{sid}/messages")["items"]
    assert len(items[2]["siblings"]) == 2


def test_an_answer_that_changed_is_another_version(server: Served, tmp_path: Path) -> None:
    """An answer that was cut off at the first import is complete after the second, and both versions are there."""
    home = HermesHome(tmp_path / "hermes")
    sid = home.session("20260101_000000_cccccc", title="Cut off")
    home.say(sid, "Hi")
    [imported] = as_json("import", "--from", "hermes", home.path, data=server.data_dir)["sessions"]
    home.add(sid, "assistant", "Hello")
    assert counts(as_json("import", "--from", "hermes", home.path, data=server.data_dir)) == (0, 1, 0, 1)
    home.close()
    assert shown(server, imported) == ["Hi", "Hello"]
    items = server.call("GET", f"/api/sessions/{imported}/messages")["items"]
    assert len(items[1]["siblings"]) == 2


def test_files_are_stored_and_unsupported_ones_are_named(server: Served, tmp_path: Path) -> None:
    """An image of the export can be downloaded; a file of another type is skipped with the reason."""
    (tmp_path / "file-1-chart.png").write_bytes(PNG)
    (tmp_path / "file-2-voice.wav").write_bytes(b"RIFF\0\0\0\0WAVE")
    parts = [{"asset_pointer": f"sediment://file-{n}"} for n in (1, 2)]
    question = node("u", "root", "user", {"content_type": "multimodal_text", "parts": [*parts, "What?"]})
    write(tmp_path / "conversations.json", conversation(question, conversation_id="files"))
    summary = as_json("import", "--from", "chatgpt", tmp_path, data=server.data_dir)
    [skipped] = summary["skipped"]
    assert skipped["reason"].startswith("file file-2-voice.wav has an unsupported type")
    [item] = server.call("GET", f"/api/sessions/{summary['sessions'][0]}/messages")["items"]
    image = next(part for part in item["parts"] if part.get("media_type") == "image/png")
    assert server.http.get(f"/api/files/{image['file_id']}/content").content == PNG


def test_a_malformed_source_changes_nothing(server: Served, tmp_path: Path) -> None:
    """An error in the second conversation names it, and not even the first one is imported."""
    before = as_json("sessions", "list", data=server.data_dir)
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([conversation(U, conversation_id="never"), {"conversation_id": "x", "mapping": 1}]))
    message = f"{file}, item 2 (line 1), field mapping: expected an object, found a number. Nothing was imported."
    refused("import", "--from", "chatgpt", file, data=server.data_dir, message=message)
    assert as_json("sessions", "list", data=server.data_dir) == before


def test_dates_are_those_of_the_source(tmp_path: Path) -> None:
    """The list and the chat show when things were said, not when they were imported, also after an import that adds to
    the chat."""
    home = HermesHome(tmp_path / "hermes")
    said = home.session("20260101_000000_eeeeee", title="Old")
    home.say(said, "Hi", "Hello")
    data = tmp_path / "data"
    [sid] = as_json("import", home.path, "--from", "hermes", data=data)["sessions"]
    home.say(said, "More", "Sure")
    assert counts(as_json("import", home.path, "--from", "hermes", data=data)) == (0, 1, 0, 2)
    home.close()
    [exported] = [line for line in ok("export", sid, data=data).splitlines() if '"type":"session"' in line]
    session = json.loads(exported)
    times = [datetime.fromisoformat(session[name]).timestamp() for name in ("created_at", "updated_at")]
    assert times == [1.7e9 + 1, 1.7e9 + 5]


def test_progress_is_shown_at_a_terminal(tmp_path: Path) -> None:
    """A bar while the source is read, and one while its chats are stored."""
    with Terminal("import", SAMPLES / "chatgpt-conversations.json", data=tmp_path / "data") as terminal:
        terminal.until("Reading")
        terminal.until("Importing")
        terminal.until("Imported 5 messages from chatgpt.")


def test_the_summary_can_be_read(tmp_path: Path) -> None:
    """Without a server, a summary is printed, and skipped items with their reasons on stderr."""
    done = holdfast("import", SAMPLES / "chatgpt-conversations.json", data=tmp_path / "data")
    assert done.stdout.decode() == "Imported 5 messages from chatgpt. Chats: 1 new, 0 updated, 0 unchanged.\n"
    assert b"Skipped 2 items:" in done.stderr
    assert "Tides" in ok("sessions", "list", data=tmp_path / "data")


def test_commands_of_the_documentation_work(server: Served, tmp_path: Path) -> None:
    """Each command of the how-to imports a sample, in the order of the page; the last one finds nothing new."""
    for app in ("chatgpt", "claude"):
        with zipfile.ZipFile(tmp_path / f"{app}-export.zip", "w") as archive:
            archive.write(SAMPLES / f"{app}-conversations.json", "conversations.json")
    shutil.copy(SAMPLES / "openwebui-chats-export.json", tmp_path / "chat-export.json")
    shutil.copy(SAMPLES / "librechat-export-flat.json", tmp_path / "conversation.json")
    home = HermesHome(tmp_path / "hermes-home")
    home.say(home.session("20260101_000000_dddddd"), "Hi", "Hello")
    home.close()
    sessions = home.path / "webui" / "sessions"
    sessions.mkdir(parents=True)
    shutil.copy(SAMPLES / "hermes-webui-session.json", sessions / "3f9c1d2e4a5b.json")
    (block,) = re.findall(r"```bash\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
    outputs = []
    for command in block.splitlines():
        program, *arguments, source = shlex.split(command)
        assert program == "holdfast"
        outputs.append(ok(*arguments, tmp_path / source, data=server.data_dir))
    *lines, last = outputs
    assert [line.split(" from ")[1].split(".")[0] for line in lines] == [
        *("chatgpt", "claude", "open-webui", "librechat", "hermes", "hermes-webui"),
    ]
    assert (json.loads(last)["source"], counts(json.loads(last))) == ("chatgpt", (0, 0, 1, 0))


TREES = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=8)), max_size=8
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=TREES, more=TREES)
def test_any_tree_is_imported_once(
    first: list[tuple[int, str, str]], more: list[tuple[int, str, str]], server: Served, tmp_path: Path
) -> None:
    """Whatever the tree, a second import adds nothing, also after the chat has grown and without losing a message."""
    rows = [*first, *more]
    nodes = [
        node(f"n{n}", "root" if n <= up else f"n{n - up - 1}", role, f"{text} {n}")
        for n, (up, role, text) in enumerate(rows)
    ]
    key = str(hash((tuple(first), tuple(more))))
    for part in (nodes[: len(first)], nodes):
        if not part:
            continue
        source = json.dumps([conversation(*part, conversation_id=key)]).encode()
        for expected in (None, 0):
            answer = server.http.post(
                "/api/import/file", content=source, headers={"Content-Type": "application/octet-stream"}
            )
            data = [line for line in answer.text.splitlines() if line.startswith("data: ")][-1]
            summary = json.loads(data.removeprefix("data: "))
            if expected is not None:
                assert counts(summary) == (0, 0, 1, 0)
