"""Detection of the application, archives that are hostile, and the limits of what is read."""

import zipfile
from pathlib import Path

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.importers import source_files
from tests.importers.outlines import convert_file
from tests.importers.test_chatgpt import SAMPLES

CHAT = (
    '[{"conversation_id": "c", "title": "T", "mapping": '
    '{"u": {"message": {"author": {"role": "user"}, "content": {"parts": ["Hi"]}}}}}]'
)


@pytest.mark.parametrize(
    ("name", "app"),
    [
        ("chatgpt-conversations.json", "chatgpt"),
        ("claude-conversations.json", "claude"),
        ("openwebui-chats-export.json", "open-webui"),
        ("librechat-export-flat.json", "librechat"),
        ("librechat-export-recursive.json", "librechat"),
        ("hermes-webui-session.json", "hermes-webui"),
    ],
)
def test_samples_are_detected(name: str, app: str) -> None:
    """Each sample is recognized from its content."""
    assert convert_file(SAMPLES / name)[1].app == app


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF\0\0", b"[1]", b'{"a": 1}', b"\xff\xfe", b"PK\x03\x04garbage", b"[]"]
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    """What is no export is refused with its name."""
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=str(path)):
        convert_file(path)


def test_a_zip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that expands to far more than its packed size is refused while it is read."""
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("conversations.json", "[" + " " * 40_000_000 + "]")
    with pytest.raises(InvalidInputError, match=r"conversations\.json: expands to far more than its packed size"):
        convert_file(path)
    monkeypatch.setattr(source_files, "MAX_BYTES", 1000)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", " " * 2000 + CHAT)
    with pytest.raises(InvalidInputError, match="larger than 1000 bytes in total"):
        convert_file(path)


def test_names_in_an_archive_are_never_paths(tmp_path: Path) -> None:
    """A member that is named like a file elsewhere is only compared, and no file outside of the archive is read."""
    (tmp_path / "file-secret.txt").write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    mapping = CHAT.replace('"parts": ["Hi"]', '"parts": [{"asset_pointer": "file-service://../file-secret"}, "Hi"]')
    with zipfile.ZipFile(inside / "export.zip", "w") as archive:
        archive.writestr("../conversations.json", mapping)
        archive.writestr("/etc/passwd", "x")
    [section], _ = convert_file(inside / "export.zip")
    assert [file.missing for file in section.files.values()] == [True]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["export.zip", "file-secret.txt"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link in a directory is not read."""
    (tmp_path / "elsewhere.json").write_text(CHAT)
    source = tmp_path / "export"
    source.mkdir()
    (source / "conversations.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(InvalidInputError, match="is not a chat export that Holdfast recognizes"):
        convert_file(source)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    """A member with a wrong checksum is named."""
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", CHAT)
    path.write_bytes(path.read_bytes().replace(b'"title": "T"', b'"title": "X"'))
    with pytest.raises(InvalidInputError, match=r"conversations\.json: cannot be unpacked: Bad CRC-32"):
        convert_file(path)
