"""Attachments: what a client says about a file is believed nowhere."""

import re
from pathlib import Path

import httpx
import pytest

from tests.http.client import Served
from tests.http.conftest import Start

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32


def upload(server: Served, name: str, content: bytes, kind: str = "application/octet-stream") -> httpx.Response:
    return server.http.post("/api/files", files={"file": (name, content, kind)})


def stored(data_dir: Path) -> list[Path]:
    return [path for path in (data_dir / "files").rglob("*") if path.is_file()]


def test_a_file_goes_up_and_comes_down_again(start: Start) -> None:
    """A1: the same bytes, as something to save; a message can name it; both survive `kill -9` at once."""
    server = start()
    file = upload(server, "größe.png", PNG).json()
    assert (file["name"], file["media_type"], file["size"]) == ("größe.png", "image/png", len(PNG))
    sid = server.session()
    parts = [{"type": "text", "text": "what is this?"}, {"type": "file", "file_id": file["id"]}]
    server.post(f"/api/sessions/{sid}/runs", {"input": parts}, 202)
    server.kill()
    server = start()
    content = server.http.get(f"/api/files/{file['id']}/content")
    assert content.content == PNG
    assert content.headers["content-disposition"] == "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe.png"
    assert "sandbox" in content.headers["content-security-policy"]
    assert content.headers["x-content-type-options"] == "nosniff"
    assert server.get(f"/api/files/{file['id']}") == file
    shown = server.messages(sid)[0]["parts"]
    named = {"type": "file", "file_id": file["id"], "name": "größe.png", "media_type": "image/png", "size": len(PNG)}
    assert shown == [parts[0], named]


@pytest.mark.parametrize(
    ("content", "said", "kept"),
    [
        (PNG, "text/plain", "image/png"),
        (b"\xff\xd8\xff\xe0 and so on", "image/png", "image/jpeg"),
        (b"GIF89a....", "", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "", "image/webp"),
        (b"%PDF-1.7 ...", "image/png", "application/pdf"),
        (b"plain words", "", "text/plain"),
        (b"a,b\n1,2\n", "text/csv", "text/csv"),
        (b"{}", "application/json", "application/json"),
        (b"<script>alert(1)</script>", "text/html", "text/plain"),
        (b"<svg onload='alert(1)'/>", "image/svg+xml", "text/plain"),
        ("é".encode() * 5000, "text/plain", "text/plain"),
    ],
)
def test_the_type_is_seen_in_the_content(shared: Served, content: bytes, said: str, kept: str) -> None:
    """No file is ever served as a page or a script, whatever its declared type."""
    file = upload(shared, "x", content, said).json()
    assert file["media_type"] == kept
    assert shared.http.get(f"/api/files/{file['id']}/content").headers["content-type"] == kept


@pytest.mark.parametrize("content", [b"\x7fELF\0\0", b"MZ\0\0", b"\xfe\xff\0a", b"abc\0def", b"\x80\x81\x82"])
def test_what_no_model_can_be_given_is_refused(server: Served, content: bytes) -> None:
    """Programs and other binaries are told apart from text, and leave nothing behind."""
    before = stored(server.data_dir)
    assert upload(server, "x.txt", content, "text/plain").status_code == 415
    assert stored(server.data_dir) == before


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/abs/olute", "olute"),
        ("a\r\nX-Evil: 1", "aX-Evil: 1"),
        ("..", ".."),
        ("x" * 999, "x" * 200),
    ],
)
def test_a_name_is_a_label_and_no_path(server: Served, name: str, label: str) -> None:
    """Whatever a client calls its file, it lies under its digest."""
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\nhello\r\n--b--\r\n'
    escaped = name.encode().replace(b"\r\n", b"%0D%0A")
    answer = server.http.post(
        "/api/files", content=body % escaped, headers={"Content-Type": "multipart/form-data; boundary=b"}
    )
    assert answer.status_code == 201
    assert answer.json()["name"] in (label, label.replace("aX", "a%0D%0AX"))
    names = [path.name for path in stored(server.data_dir)]
    assert "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" in names
    assert all(re.fullmatch("[0-9a-f]{64}", name) for name in names)


def test_the_same_content_is_kept_once(server: Served) -> None:
    """Two files, one content."""
    before = len(stored(server.data_dir))
    first, second = upload(server, "a", b"same").json(), upload(server, "b", b"same").json()
    assert first["id"] != second["id"]
    assert len(stored(server.data_dir)) == before + 1


def test_a_file_over_the_limit_is_refused_while_it_arrives(start: Start) -> None:
    """The limit holds whatever length was announced, and nothing of it stays."""
    server = start(max_file_mb=1)
    assert upload(server, "x", b"x" * (1024 * 1024)).status_code == 201
    assert upload(server, "x", b"y" * (1024 * 1024 + 1)).status_code == 413

    def endless() -> object:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
        for _ in range(64):
            yield b"z" * 65536

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = server.http.post("/api/files", content=endless(), headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 413
    assert len(stored(server.data_dir)) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        b"--b\r\n",
        b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nhalf',
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n\r\n--b--\r\n',
        b"--b\r\n" + b"X" * 20000,
        b"--b\r\nContent-Disposition: " + b"x" * 20000,
        b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n' * 101
        + b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nx\r\n--b--\r\n',
    ],
)
def test_a_form_that_is_none_is_told(server: Served, body: bytes) -> None:
    """A broken upload is a 4xx with a sentence, and leaves nothing."""
    before = stored(server.data_dir)
    answer = server.http.post("/api/files", content=body, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status_code == 422
    assert answer.json()["field"] == "file"
    assert stored(server.data_dir) == before


FILE_PART = b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n%s\r\ntext\r\n'


@pytest.mark.parametrize(
    ("boundary", "body", "problem"),
    [
        ("b" * 50_000, b"", "boundary"),
        ("b", b"--b\r\n\r\n\r\n" * 100 + FILE_PART % b"" + b"--b--\r\n", "more than 20 parts"),
        ("b", FILE_PART % (b"A: b\r\n" * 100) + b"--b--\r\n", "malformed"),
    ],
)
def test_a_form_has_few_parts_with_few_headers(server: Served, boundary: str, body: bytes, problem: str) -> None:
    """Millions of empty parts or headers are not read, and a boundary is at most as long as its standard allows."""
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    answer = server.http.post("/api/files", content=body, headers=headers)
    assert (answer.status_code, answer.json()["field"]) == (422, "file")
    assert problem in answer.json()["detail"]


def test_a_file_that_is_not_there_cannot_be_sent(server: Served) -> None:
    """A1: a message that names an unknown file is refused whole."""
    sid = server.session()
    body = {"input": [{"type": "file", "file_id": "file_none"}]}
    assert server.post(f"/api/sessions/{sid}/runs", body, 404)["type"] == "not-found"
    assert server.messages(sid) == []
    server.get("/api/files/file_none", 404)
    server.get("/api/files/file_none/content", 404)
