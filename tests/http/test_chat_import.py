"""Imports of uploaded files: what a failure leaves behind."""

import hashlib
import io
import json
import os
import secrets
import signal
import socket
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from starlette.types import Receive, Scope, Send

from holdfast.core.ids import LOCAL
from holdfast.ports.store import SessionQuery
from holdfast.server.app import build
from holdfast.server.authenticator import Authenticator
from holdfast.server.context import ApiContext
from holdfast.storage.file_store import FileStore
from holdfast.storage.key_file import KeyFile
from tests.engine.test_import_reader import END, MESSAGE, SESSION
from tests.fork_server import ServerForker
from tests.harness import running
from tests.http.client import Served, import_lines
from tests.http.conftest import Start
from tests.http.streams import GUARD, until
from tests.importers.hostile_files import write_endless_pages
from tests.importers.test_chatgpt import conversation, node
from tests.storage_interceptors import until as reached


def section(*files: dict[str, Any], text: str = "") -> bytes:
    message = {**MESSAGE, "parts": [{"type": "text", "text": text}]} if text else MESSAGE
    session = {**SESSION, "id": f"ses_{len(text)}"}
    lines = [session, message, *files, {**END, "files": sum(file["type"] == "file" for file in files)}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def file_lines(content: bytes, size: int) -> list[dict[str, Any]]:
    digest = hashlib.sha256(content).hexdigest()
    file = {"id": "file_1", "name": "f", "media_type": "image/png", "size": size, "sha256": digest, "missing": False}
    return [{"type": "file", **file}, {"type": "content", "data": b64encode(content).decode()}]


def upload(server: Served, content: bytes | Iterator[bytes]) -> tuple[str, dict[str, Any]]:
    """The last frame of the stream."""
    headers = {"Content-Type": "application/octet-stream"}
    answer = server.http.post("/api/import/file", content=content, headers=headers)
    *_, event, data = [line for line in answer.text.splitlines() if line.startswith(("event: ", "data: "))]
    return event.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_progress_is_reported_while_chats_are_read_and_stored(server: Served) -> None:
    """First how many bytes of the source were read, then how many of its chats are stored."""
    chats = [conversation(node("u", "root", "user", f"Hi {n}"), conversation_id=f"progress {n}") for n in range(4)]
    headers = {"Content-Type": "application/octet-stream"}
    source = json.dumps(chats).encode()
    answer = server.http.post("/api/import/file", content=source, headers=headers)
    *progress, done = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert done["imported"] == 4
    read = [(each["done"], each["total"]) for each in progress if each["what"] == "reading"]
    stored = [(each["done"], each["total"]) for each in progress if each["what"] == "importing"]
    assert read == sorted(read)
    assert read[-1] == (len(source), len(source))
    assert stored == [(n, 4) for n in range(4)]
    assert [each["what"] for each in progress] == ["reading"] * len(read) + ["importing"] * 4


@pytest.mark.parametrize(
    ("content", "size", "problem"),
    [(b"x", 2**40, "is larger than 50 MB"), (b"\x7fELF\0\0", 6, "has an unsupported type")],
)
def test_a_refused_file_in_a_later_chat_changes_nothing(
    server: Served, content: bytes, size: int, problem: str
) -> None:
    """A file that the rules refuse is found before the first chat is stored, so a repetition doubles nothing."""
    before = server.call("GET", "/api/sessions")["items"]
    event, data = upload(server, section() + section(*file_lines(content, size)))
    assert (event, data["type"]) == ("failed", "invalid")
    assert f"file 'file_1' {problem}" in data["detail"]
    assert data["detail"].endswith("Nothing was imported.")
    assert server.call("GET", "/api/sessions")["items"] == before


def test_a_file_adds_nothing_to_a_chat_of_another_application(server: Served) -> None:
    """An export of ours that claims to be a copy of a conversation that was imported becomes a chat of its own, however
    it is imported. What a reader of ours has made of the application's own file is added."""
    chat = json.dumps([conversation(node("u", "root", "user", "Hi"), conversation_id="c1")]).encode()
    sid = upload(server, chat)[1]["sessions"][0]["id"]
    head, *rest = [json.loads(line) for line in section().splitlines()]
    head["origin"] = {"app": "chatgpt", "id": "c1"}
    forged = b"\n".join(json.dumps(line).encode() for line in (head, *rest))
    (imported,) = import_lines(server, forged)
    done = upload(server, forged.replace(b'"ses_0"', b'"ses_2"'))[1]
    reason = "it is no copy of a chat of chatgpt, because a file cannot say so"
    assert (imported["is_new"], imported["skipped"]) == (True, [reason])
    assert (done["imported"], [each["reason"] for each in done["skipped"]]) == (1, [reason])
    assert len({sid, imported["session_id"], done["sessions"][0]["id"]}) == 3
    assert [message["parts"][0]["text"] for message in server.messages(sid)] == ["Hi"]
    (converted,) = import_lines(server, forged, converted="true")
    assert (converted["session_id"], converted["messages"], converted["skipped"]) == (sid, 1, [])


def test_an_import_is_received_in_the_data_directory(http_forker: ServerForker, tmp_path: Path) -> None:
    """Its space is the one that is checked; nothing is left of it, nor of one that a killed process received."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / ".import-old").write_bytes(b"x")
    with Served(http_forker, data) as server:
        server.ready()
        assert not list(data.glob(".import-*"))

        def body() -> Iterator[bytes]:
            yield section()
            until(lambda: list(data.glob(".import-*")))

        assert upload(server, body())[0] == "done"
        until(lambda: not list(data.glob(".import-*")))


def test_an_import_that_expands_leaves_the_reserve_of_the_disk_alone(server: Served) -> None:
    """The converted chats need space too: they are refused before they are written, and nothing is stored."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        question = node("u", "root", "user", secrets.token_hex(200_000))
        archive.writestr("conversations.json", json.dumps([conversation(question, conversation_id="large")]))
    server.order(free=64 * 1024 * 1024 + 300_000)
    try:
        event, data = upload(server, packed.getvalue())
    finally:
        server.order(free=None)
    assert (event, data["type"]) == ("failed", "storage-full")
    assert data["detail"].endswith("Nothing was imported.")


def write_files(path: Path) -> bytes:
    """A ChatGPT export of a question with three files: of one there is only the name, of one the content is refused."""
    assets = [{"asset_pointer": f"file-service://{fid}", "size_bytes": 5} for fid in ("file-a", "file-b", "file-c")]
    question = node("u", "root", "user", {"content_type": "multimodal_text", "parts": [*assets, "Look"]})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([conversation(question, conversation_id="files")]))
        archive.writestr("file-b.bin", b"\x7fELF\0")
        archive.writestr("file-c.txt", b"words")
    return path.read_bytes()


def test_files_without_content_say_why(server: Served, tmp_path: Path) -> None:
    """Whether the export has none, or it is refused. An import of an export of the chat says so too."""

    def missing(sid: str) -> list[tuple[str, str | None]]:
        [question] = server.get(f"/api/sessions/{sid}/messages")["items"]
        return [(part["name"], part.get("missing")) for part in question["parts"] if part["type"] == "file"]

    _, done = upload(server, write_files(tmp_path / "export.zip"))
    [session] = done["sessions"]
    found = [("file-a", "not_in_export"), ("file-b.bin", "not_imported"), ("file-c.txt", None)]
    assert missing(session["id"]) == found
    export = server.http.get(f"/api/sessions/{session['id']}/export").content
    _, done = upload(server, export.replace(session["id"].encode(), b"ses_elsewhere"))
    [copy] = done["sessions"]
    assert missing(copy["id"]) == [("file-a", "not_in_export"), ("file-b.bin", "not_in_export"), ("file-c.txt", None)]


@pytest.fixture
def endless(tmp_path: Path) -> bytes:
    path = tmp_path / "state.db"
    write_endless_pages(path)
    return path.read_bytes()


def begin_import(server: Served, content: bytes) -> AbstractContextManager[httpx.Response]:
    headers = {"Content-Type": "application/octet-stream"}
    return server.http.stream("POST", "/api/import/file", content=content, headers=headers)


def test_an_import_ends_when_the_client_leaves(server: Served, endless: bytes) -> None:
    """The thread that reads an endless database ends, and what was received is removed."""
    with begin_import(server, endless):
        assert list(server.data_dir.glob(".import-*"))
    until(lambda: not list(server.data_dir.glob(".import-*")))


def test_the_server_stops_during_an_import(start: Start, endless: bytes) -> None:
    """A signal to stop ends the thread that reads an endless database."""
    server = start()
    with begin_import(server, endless):
        assert server.terminate() == 0


def test_an_import_does_not_wait_for_the_runs_of_a_server_that_stops(start: Start, endless: bytes) -> None:
    """It ends at the signal, with the reason."""
    server = start(drain=600.0)
    with begin_import(server, endless) as answer:
        lines = answer.iter_lines()
        server.tell(signal.SIGTERM)
        *_, event, data = [line for line in lines if line.startswith(("event: ", "data: "))]
    assert event == "event: failed"
    failure = json.loads(data.removeprefix("data: "))
    assert failure["type"] == "draining"
    assert failure["detail"].endswith("Nothing was imported.")
    assert server.buried() == 0


def test_many_imports_leave_threads_to_others(server: Served, endless: bytes) -> None:
    """More endless imports than there are threads at a time do not keep a file from being uploaded."""
    with ExitStack() as imports:
        for _ in range(45):
            imports.enter_context(begin_import(server, endless))
        assert server.http.post("/api/files", files={"file": ("a", b"text")}).status_code == 201
    until(lambda: not list(server.data_dir.glob(".import-*")))


def test_requests_that_do_not_end_are_not_held_in_memory(start: Start) -> None:
    """A line without an end, on several connections: it waits in a file until all of it is there, and is refused."""
    server = start()
    import_lines(server, section(text="x" * 3_000_000))  # what the first large import needs once
    size, before = 16_000_000, server.resident
    head = "POST /api/import HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    with ExitStack() as opened:
        lines = [opened.enter_context(socket.create_connection(server.address, GUARD)) for _ in range(6)]
        for line in lines:
            line.sendall(f"{head}Content-Length: {size + 1}\r\n\r\n".encode() + b" " * size)
        assert server.resident - before < 20_000_000
        for line in lines:
            line.sendall(b"x")
            assert line.recv(1000).startswith(b"HTTP/1.1 422")


@pytest.mark.anyio
async def test_large_imports_take_turns(tmp_path: Path) -> None:
    """However many there are, a few are read at a time; a small one goes ahead of them."""
    async with running([], files=FileStore(tmp_path / "files")) as it:
        gate, limiter = Authenticator(KeyFile(tmp_path), it.world.clock), anyio.CapacityLimiter(1)
        app = build(ApiContext(it.engine, gate, [("chat", True, True)], import_limiter=limiter))

        async def own_user() -> int:
            return os.geteuid()

        async def trusted(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, "extensions": {"holdfast.peer_user": own_user}}, receive, send)

        async def send(content: bytes) -> None:
            headers = {"Content-Type": "application/x-ndjson"}
            answer = await client.post("/api/import", content=content, headers=headers)
            assert answer.status_code == 201, answer.text

        transport = httpx.ASGITransport(trusted)
        client = httpx.AsyncClient(transport=transport, base_url="http://localhost")
        async with client, anyio.create_task_group() as tasks, limiter:
            tasks.start_soon(send, section(text="x" * 2_000_000))
            await send(section())
            await reached(lambda: limiter.statistics().tasks_waiting == 1)
            assert len(await it.engine.sessions.list(SessionQuery(LOCAL))) == 1
        # the task group has waited for the large one
        assert len(await it.engine.sessions.list(SessionQuery(LOCAL))) == 2
