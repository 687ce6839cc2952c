"""Imports of uploaded files: what a failure leaves behind."""

import hashlib
import io
import json
import secrets
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.engine.test_import_reader import END, MESSAGE, SESSION
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until
from tests.importers.hostile_files import write_endless_pages
from tests.importers.test_chatgpt import conversation, node
from tests.nursery import Nursery


def section(*files: dict[str, Any]) -> bytes:
    lines = [SESSION, MESSAGE, *files, {**END, "files": sum(file["type"] == "file" for file in files)}]
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


@pytest.mark.parametrize(
    ("content", "size", "problem"),
    [(b"x", 2**40, "is over the limit of"), (b"\x7fELF\0\0", 6, "has an unsupported type")],
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


def test_an_import_is_received_in_the_data_directory(http_nursery: Nursery, tmp_path: Path) -> None:
    """Its space is the one that is checked; nothing is left of it, nor of one that a killed process received."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / ".import-old").write_bytes(b"x")
    with Served(http_nursery, data) as server:
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


def test_many_imports_leave_threads_to_others(server: Served, endless: bytes) -> None:
    """More endless imports than there are threads at a time do not keep a file from being uploaded."""
    with ExitStack() as imports:
        for _ in range(45):
            imports.enter_context(begin_import(server, endless))
        assert server.http.post("/api/files", files={"file": ("a", b"text")}).status_code == 201
    until(lambda: not list(server.data_dir.glob(".import-*")))
