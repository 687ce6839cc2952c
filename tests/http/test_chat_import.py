"""Imports of uploaded files: what a failure leaves behind."""

import hashlib
import json
from base64 import b64encode
from typing import Any

import pytest

from tests.engine.test_import_reader import END, MESSAGE, SESSION
from tests.http.client import Served


def section(*files: dict[str, Any]) -> bytes:
    lines = [SESSION, MESSAGE, *files, {**END, "files": sum(file["type"] == "file" for file in files)}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def file_lines(content: bytes, size: int) -> list[dict[str, Any]]:
    digest = hashlib.sha256(content).hexdigest()
    file = {"id": "file_1", "name": "f", "media_type": "image/png", "size": size, "sha256": digest, "missing": False}
    return [{"type": "file", **file}, {"type": "content", "data": b64encode(content).decode()}]


def upload(server: Served, content: bytes) -> tuple[str, dict[str, Any]]:
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
