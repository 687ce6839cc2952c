"""Contents of files, by digest: on disk, and in PostgreSQL for many nodes."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from holdfast.core.errors import InvalidInputError, NotFoundError, StorageError, StorageUnavailableError
from holdfast.ports.files import Files
from holdfast.storage.file_store import FileStore
from holdfast.storage.postgres import PostgresConfig
from holdfast.storage.postgres.files import PostgresFiles

Open = Callable[[], Files]


def save(files: Files, chunks: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    size = 0
    with files.begin() as incoming:
        for chunk in chunks:
            incoming.write(chunk)
            whole.update(chunk)
            size += len(chunk)
        assert incoming.finish() == (whole.hexdigest(), size)
    return whole.hexdigest()


def stored(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.fixture(params=["disk", "postgres"])
def open_files(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same contents as another process or node."""
    if request.param == "disk":
        return lambda: FileStore(tmp_path / "files")
    place: PostgresConfig = request.getfixturevalue("place")
    return lambda: PostgresFiles(place, tmp_path, grace=0.0)


@pytest.mark.parametrize("size", [0, 1, 256 * 1024, 256 * 1024 + 1, 3_000_000])
def test_a_content_is_found_by_its_digest(open_files: Open, size: int) -> None:
    """A1: whole, in pieces, and from a place in the middle, whatever its length."""
    content = (b"012345\x00789" * (size // 10 + 1))[:size]
    digest = save(open_files(), [content[: size // 2], b"", content[size // 2 :]])
    with open_files().open(digest) as found:
        assert found.read() == content
        found.seek(size // 3)
        assert found.read(100_000) == content[size // 3 : size // 3 + 100_000]
        assert found.seek(0, 2) == size


def test_the_same_content_is_kept_once(open_files: Open) -> None:
    """Uploads of the same bytes, at the same time too, share them; deleting is repeatable."""
    files = open_files()
    with ThreadPoolExecutor(4) as pool:
        (digest,) = set(pool.map(lambda _: save(files, [b"same" * 100_000]), range(8)))
    with files.open(digest) as found:
        assert found.read() == b"same" * 100_000
    files.delete(digest)
    files.delete(digest)
    with pytest.raises(NotFoundError):
        files.open(digest)


def test_a_broken_upload_leaves_nothing(open_files: Open, tmp_path: Path) -> None:
    """E3: if the chunks stop with an error, no part stays, on disk or in PostgreSQL; neither does one that was never
    finished."""
    files = open_files()

    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        save(files, chunks())
    with files.begin() as incoming:
        incoming.write(b"half")
    assert stored(tmp_path) == []
    with pytest.raises(NotFoundError):
        files.open(hashlib.sha256(b"half").hexdigest())


def test_a_content_is_private(tmp_path: Path) -> None:
    """Its file is named for its digest, in a directory that only its owner can read."""
    digest = save(FileStore(tmp_path / "files"), [b"x"])
    assert stored(tmp_path / "files") == [f"{digest[:2]}/{digest}"]
    assert (tmp_path / "files").stat().st_mode & 0o077 == 0


def test_what_a_crash_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    """A1: an unfinished content of an earlier process goes; finished ones stay."""
    files = FileStore(tmp_path / "files")
    digest = save(files, [b"whole"])
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
    with pytest.raises(InvalidInputError):
        files.open(name)
    with pytest.raises(InvalidInputError):
        files.delete(name)


def test_errors_of_the_system_stay_inside(tmp_path: Path) -> None:
    """A place that cannot be written to is reported as unavailable storage."""
    (tmp_path / "files").write_text("in the way")
    with pytest.raises(StorageUnavailableError):
        save(FileStore(tmp_path / "files"), [b"x"])


@pytest.mark.parametrize("lost", [0, 1, 3, 5, 9])
def test_a_content_with_a_piece_missing_is_not_read_as_if_it_were_whole(
    place: PostgresConfig, tmp_path: Path, lost: int
) -> None:
    """E1: what is damaged says so."""
    files = PostgresFiles(place, tmp_path)
    digest = save(files, [b"x" * (10 * 256 * 1024)])
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute("DELETE FROM holdfast.chunks WHERE n = %s", (lost,))
    with pytest.raises(StorageError), files.open(digest) as found:
        found.read()


def test_many_files_at_once_take_few_connections(place: PostgresConfig, tmp_path: Path) -> None:
    """L6: whoever downloads slowly costs PostgreSQL no connection, or a few dozen of them would keep out everybody."""
    files = PostgresFiles(place, tmp_path)
    content = bytes(range(256)) * 10_000
    digest = save(files, [content])
    with psycopg.connect(place.url, autocommit=True) as db, ExitStack() as held:
        slow = [held.enter_context(files.open(digest)) for _ in range(30)]
        assert {found.read(1000) for found in slow} == {content[:1000]}
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
        row = db.execute(count, (place.name,)).fetchone()
        assert row is not None
        assert row[0] <= 4
        with ThreadPoolExecutor(12) as pool:
            assert set(pool.map(lambda found: found.read(), slow)) == {content[1000:]}


def test_a_content_is_deleted_when_nobody_names_it_and_not_too_soon(place: PostgresConfig, tmp_path: Path) -> None:
    """A content whose row may be about to be written on another node is spared, and not forgotten."""
    careful, hasty = PostgresFiles(place, tmp_path), PostgresFiles(place, tmp_path, grace=0.0)
    named, unnamed = save(careful, [b"named"]), save(careful, [b"unnamed"])
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute("INSERT INTO holdfast.files VALUES ('file_1', 'local', %s, 'a.txt', 'text/plain', 5, 1.0)", (named,))
    careful.delete(unnamed)
    careful.open(unnamed).close()
    hasty.delete("something else")
    with pytest.raises(NotFoundError):
        careful.open(unnamed)
    careful.open(named).close()
