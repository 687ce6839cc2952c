"""Contents of files, by digest."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.errors import Invalid, NotFound, StorageUnavailable
from holdfast.ports import Files
from holdfast.storage.files import FileStore

PORT: type[Files] = FileStore


def stored(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_content_is_found_by_its_digest(tmp_path: Path) -> None:
    """What was saved comes back, under the digest of its bytes and in a private place."""
    files = FileStore(tmp_path / "files")
    digest, size = files.save([b"a\x00b", b"", b"c" * 100_000])
    content = b"a\x00b" + b"c" * 100_000
    assert (digest, size) == (hashlib.sha256(content).hexdigest(), len(content))
    with files.open(digest) as file:
        assert file.read() == content
    assert stored(tmp_path / "files") == [f"{digest[:2]}/{digest}"]
    assert (tmp_path / "files").stat().st_mode & 0o077 == 0


def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    """Two files with the same bytes share them; deleting is repeatable."""
    files = FileStore(tmp_path / "files")
    digest, _ = files.save([b"same"])
    assert files.save([b"sa", b"me"]) == (digest, 4)
    assert len(stored(tmp_path / "files")) == 1
    files.delete(digest)
    files.delete(digest)
    with pytest.raises(NotFound):
        files.open(digest)


def test_a_broken_upload_leaves_nothing(tmp_path: Path) -> None:
    """If the chunks stop with an error, it is passed on and no part stays; neither does one that was never finished."""
    files = FileStore(tmp_path / "files")

    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        files.save(chunks())
    with files.begin() as incoming:
        incoming.write(b"given up")
    assert stored(tmp_path / "files") == []


def test_what_a_crash_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    """A1: an unfinished content of an earlier process goes; finished ones stay."""
    files = FileStore(tmp_path / "files")
    digest, _ = files.save([b"whole"])
    with files.begin() as incoming:
        incoming.write(b"half")
        assert len(stored(tmp_path / "files")) == 2
        FileStore(tmp_path / "files")  # as another process would
        assert len(stored(tmp_path / "files")) == 1
    assert stored(tmp_path / "files") == [f"{digest[:2]}/{digest}"]


ZEROS = "0" * 64


@pytest.mark.parametrize("name", ["", "../../etc/passwd", ZEROS[1:], "A" * 64, ZEROS + "/..", ZEROS + " "])
def test_only_a_digest_is_a_name(tmp_path: Path, name: str) -> None:
    """No text from outside becomes a path."""
    files = FileStore(tmp_path / "files")
    with pytest.raises(Invalid):
        files.open(name)
    with pytest.raises(Invalid):
        files.delete(name)


def test_errors_of_the_system_stay_inside(tmp_path: Path) -> None:
    """A place that cannot be written to is reported as unavailable storage."""
    (tmp_path / "files").write_text("in the way")
    with pytest.raises(StorageUnavailable):
        FileStore(tmp_path / "files").save([b"x"])
