"""Files and the keyring in PostgreSQL: what their files on disk promise, for many nodes."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from holdfast.core.errors import NotFound, StorageError
from holdfast.ports import Token
from holdfast.storage.postgres import Place
from holdfast.storage.postgres.files import PostgresFiles
from holdfast.storage.postgres.keys import PostgresKeys
from tests.http.streams import until
from tests.servers import PostgresServer


def save(files: PostgresFiles, *chunks: bytes) -> str:
    with files.begin() as incoming:
        for chunk in chunks:
            incoming.write(chunk)
        digest, size = incoming.finish()
    assert (digest, size) == (hashlib.sha256(b"".join(chunks)).hexdigest(), sum(map(len, chunks)))
    return digest


@pytest.mark.parametrize("size", [0, 1, 256 * 1024, 256 * 1024 + 1, 3_000_000])
def test_a_content_is_read_by_another_node(place: Place, tmp_path: Path, size: int) -> None:
    """A1: whole, in pieces, and from a place in the middle, whatever its length."""
    content = (b"0123456789" * (size // 10 + 1))[:size]
    digest = save(PostgresFiles(place, tmp_path), content[: size // 2], content[size // 2 :])
    with PostgresFiles(place, tmp_path).open(digest) as found:
        assert found.read() == content
        found.seek(size // 3)
        assert found.read(100_000) == content[size // 3 : size // 3 + 100_000]
        assert found.seek(0, 2) == size


def test_what_was_not_finished_is_gone(place: Place, tmp_path: Path) -> None:
    """E3: an upload that broke off leaves nothing, on disk or in PostgreSQL."""
    files = PostgresFiles(place, tmp_path)
    with files.begin() as incoming:
        incoming.write(b"half")
    assert list(tmp_path.iterdir()) == []
    with psycopg.connect(place.url) as db:
        assert db.execute("SELECT count(*) FROM holdfast.contents").fetchone() == (0,)
    with pytest.raises(NotFound):
        files.open(hashlib.sha256(b"half").hexdigest())


def test_the_same_content_at_once_is_kept_once(place: Place, tmp_path: Path) -> None:
    """Two nodes that are sent the same file at the same time both have it, and it is there once."""
    with ThreadPoolExecutor(4) as pool:
        digests = set(pool.map(lambda _: save(PostgresFiles(place, tmp_path), b"same" * 100_000), range(8)))
    (digest,) = digests
    with PostgresFiles(place, tmp_path).open(digest) as found:
        assert found.read() == b"same" * 100_000


@pytest.mark.parametrize("lost", [0, 1, 3, 5, 9])
def test_a_content_with_a_piece_missing_is_not_read_as_if_it_were_whole(
    place: Place, tmp_path: Path, lost: int
) -> None:
    """E1: what is damaged says so."""
    files = PostgresFiles(place, tmp_path)
    digest = save(files, b"x" * (10 * 256 * 1024))
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute("DELETE FROM holdfast.chunks WHERE n = %s", (lost,))
    with pytest.raises(StorageError), files.open(digest) as found:
        found.read()


def test_many_files_at_once_take_few_connections(place: Place, tmp_path: Path) -> None:
    """L6: whoever downloads slowly costs PostgreSQL no connection, or a few dozen of them would keep out everybody."""
    files = PostgresFiles(place, tmp_path)
    content = bytes(range(256)) * 10_000
    digest = save(files, content)
    with psycopg.connect(place.url, autocommit=True) as db, ExitStack() as held:
        slow = [held.enter_context(files.open(digest)) for _ in range(30)]
        assert {found.read(1000) for found in slow} == {content[:1000]}
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
        row = db.execute(count, (place.name,)).fetchone()
        assert row is not None
        assert row[0] <= 4
        with ThreadPoolExecutor(12) as pool:
            assert set(pool.map(lambda found: found.read(), slow)) == {content[1000:]}


def test_a_content_is_deleted_when_nobody_names_it_and_not_too_soon(place: Place, tmp_path: Path) -> None:
    """A content whose row may be about to be written on another node is spared, and not forgotten."""
    careful, hasty = PostgresFiles(place, tmp_path), PostgresFiles(place, tmp_path, grace=0.0)
    named, unnamed = save(careful, b"named"), save(careful, b"unnamed")
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute("INSERT INTO holdfast.files VALUES ('file_1', 'local', %s, 'a.txt', 'text/plain', 5, 1.0)", (named,))
    careful.delete(unnamed)
    careful.open(unnamed).close()
    hasty.delete("something else")
    with pytest.raises(NotFound):
        careful.open(unnamed)
    careful.open(named).close()


def test_a_keyring_is_one_for_all_nodes(place: Place) -> None:
    """Changes at the same time are all kept, and a node that watches has them without being asked."""
    nodes = [PostgresKeys(place) for _ in range(4)]
    watching = PostgresKeys(place)
    watching.keep_watch()
    try:
        key = watching.read().cookie_key
        start = threading.Barrier(4)

        def add(n: int) -> None:
            start.wait(20.0)
            token = Token(f"tok_{n}", f"name {n} \x00", "digest", 1.0)
            nodes[n].change(lambda ring: replace(ring, tokens=(*ring.tokens, token)))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(4)))
        assert until(lambda: len(watching.read().tokens), lambda count: count == 4)
        assert {node.read().cookie_key for node in (*nodes, watching)} == {key}
        assert {token.name for token in watching.read().tokens} == {f"name {n} \x00" for n in range(4)}
    finally:
        watching.close()


def test_looking_at_a_keyring_makes_nothing(postgres: PostgresServer) -> None:
    """A command that only looks at an empty database leaves it empty."""
    url = postgres.database("untouched")
    assert PostgresKeys(Place(url)).read().tokens == ()
    with psycopg.connect(url) as db:
        found = db.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'").fetchone()
    assert found == (0,)
