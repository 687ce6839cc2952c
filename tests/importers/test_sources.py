"""Detection of the application, archives that are hostile, and the limits of what is read."""

import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.importers import source_files
from holdfast.importers.sources import NoExportError, SourceApp, WrongSourceError
from tests.importers.hermes_home import HermesHome
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


OTHERS = {
    "chatgpt-conversations.json": "a ChatGPT export. Choose ChatGPT as the source",
    "claude-conversations.json": "a Claude export. Choose Claude as the source",
    "openwebui-chats-export.json": "an Open WebUI export. Choose Open WebUI as the source",
    "librechat-export-flat.json": "a LibreChat export. Choose LibreChat as the source",
}


@pytest.mark.parametrize("name", list(OTHERS))
@pytest.mark.parametrize("app", ["chatgpt", "claude", "open-webui", "librechat", "hermes", "hermes-webui"])
def test_the_wrong_source_is_named(name: str, app: SourceApp) -> None:
    """The error says what the file looks like and what to choose. The right source is no error."""
    if convert_file(SAMPLES / name)[1].app == app:
        assert convert_file(SAMPLES / name, app)[1].sessions
        return
    with pytest.raises(WrongSourceError) as caught:
        convert_file(SAMPLES / name, app)
    assert str(caught.value) == f"{SAMPLES / name} looks like {OTHERS[name]}"


@pytest.mark.parametrize("app", ["chatgpt", "hermes"])
def test_our_own_export_is_detected(tmp_path: Path, app: SourceApp) -> None:
    """There is no source to choose for it."""
    path = tmp_path / "chats.jsonl"
    path.write_text('{"type":"session","format":"holdfast-session","version":1}\n{"type":"end"}\n')
    with pytest.raises(WrongSourceError, match=r"looks like a Holdfast export\. Choose “Detect source” for it"):
        convert_file(path, app)


PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("picture", PNG, "is an image, not a chat export"),
        ("photo.heic", b"\0\0\0\x18ftypheic", "is an image, not a chat export"),
        ("film.mp4", b"\0\0\0\x18ftypmp42", "is a video, not a chat export"),
        ("song.mp3", b"ID3", "is a sound file, not a chat export"),
        ("book.pdf", b"%PDF-1.7", "is a PDF file, not a chat export"),
    ],
)
@pytest.mark.parametrize("app", [None, "chatgpt"])
def test_what_cannot_be_an_export_is_named(
    tmp_path: Path, name: str, content: bytes, problem: str, app: SourceApp | None
) -> None:
    """It is not suggested that another source would help."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(NoExportError) as caught:
        convert_file(path, app)
    assert str(caught.value) == f"{path} {problem}"
    with zipfile.ZipFile(tmp_path / "files.zip", "w") as archive:
        archive.writestr(name, content)
    with pytest.raises(NoExportError, match=r"files\.zip contains no chats"):
        convert_file(tmp_path / "files.zip", app)


CHATGPT, HERMES, WEB_UI = 1_756_000_000, 1_700_000_000, 1_700_000_000
CLAUDE = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
LIBRECHAT = datetime(2024, 4, 9, 14, 32, 5, 230_000, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("name", "created", "messages"),
    [
        ("chatgpt-conversations.json", CHATGPT + 0.123456, [CHATGPT + n for n in (1, 2, 3, 8, 9)]),
        ("claude-conversations.json", CLAUDE, [CLAUDE + n for n in (1, 2, 3, 4, 5)]),
        ("openwebui-chats-export.json", WEB_UI, [WEB_UI + n for n in (0, 10, 20, 21, 11)]),
        ("librechat-export-flat.json", LIBRECHAT, [LIBRECHAT] * 5),
        ("librechat-export-recursive.json", LIBRECHAT, [LIBRECHAT] * 5),
        ("hermes-webui-session.json", CHATGPT + 0.1, [CHATGPT + n for n in (1, 2, 5, 6)]),
        ("state.db", HERMES + 1, [HERMES + 2, HERMES + 3]),
    ],
)
def test_dates_are_kept(name: str, created: float, messages: list[float], tmp_path: Path) -> None:
    """A chat and each of its messages have the date of the source, whatever the format writes it in; siblings with the
    same date stay in their order by a microsecond."""
    path = SAMPLES / name
    if name == "state.db":
        home = HermesHome(tmp_path)
        home.say(home.session(), "Hi", "Hello")
        home.close()
        path = home.path / name
    [section], _ = convert_file(path)
    assert section.session.created_at == pytest.approx(created, abs=1e-5)
    assert [message.created_at for message in section.messages] == pytest.approx(messages, abs=1e-5)
    assert section.session.updated_at == max(message.created_at for message in section.messages)


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
    with pytest.raises(InvalidInputError, match=r"Couldn't recognize .* choose its source"):
        convert_file(source)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    """A member with a wrong checksum is named."""
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", CHAT)
    path.write_bytes(path.read_bytes().replace(b'"title": "T"', b'"title": "X"'))
    with pytest.raises(InvalidInputError, match=r"conversations\.json: cannot be unpacked: Bad CRC-32"):
        convert_file(path)
