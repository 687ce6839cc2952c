"""The keyring: private, atomic, and seen by a process that did not write it; in PostgreSQL one for all nodes."""

import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from holdfast.core.errors import StorageUnavailableError
from holdfast.ports.keyring import ApiToken, Keyring
from holdfast.server.authenticator import COOKIE, Authenticator
from holdfast.storage.key_file import KeyFile
from holdfast.storage.postgres import PostgresConfig
from holdfast.storage.postgres.keyring import PostgresKeys
from holdfast.system import SystemClock
from tests.http.streams import until
from tests.servers import PostgresServer


def add(name: str) -> ApiToken:
    return ApiToken(name, name, "00", 1.0)


def test_a_fresh_directory_has_a_key_and_nothing_else(tmp_path: Path) -> None:
    """The key that signs cookies is made once and kept; the file is its owner's alone."""
    ring = KeyFile(tmp_path).read()
    assert (ring.password, ring.tokens, ring.provider_keys) == (None, (), {})
    assert len(ring.cookie_key) == 64
    assert KeyFile(tmp_path).read() == ring
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600


def test_a_change_is_seen_by_who_has_read_before(tmp_path: Path) -> None:
    """`holdfast password` beside a running server."""
    server, command = KeyFile(tmp_path), KeyFile(tmp_path)
    server.read()
    command.change(lambda ring: replace(ring, password="hash", provider_keys={"openai": "sk"}))
    assert (server.read().password, server.read().provider_keys) == ("hash", {"openai": "sk"})


def test_changes_at_the_same_time_are_all_made(tmp_path: Path) -> None:
    """One after the other, also between processes: the lock is a file."""

    def many(letter: str) -> None:
        file = KeyFile(tmp_path)
        for n in range(20):
            file.change(lambda ring, n=n: replace(ring, tokens=(*ring.tokens, add(f"{letter}{n}"))))  # type: ignore[misc]

    threads = [threading.Thread(target=many, args=(letter,)) for letter in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(KeyFile(tmp_path).read().tokens) == 60


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    """Whatever is raised inside."""
    file = KeyFile(tmp_path)
    before = file.read()

    def fails(_: Keyring) -> Keyring:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        file.change(fails)
    assert file.read() == before
    assert {path.name for path in tmp_path.iterdir()} == {"keys.json", "keys.lock"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"cookie_key": 1}', b"\xff"])
def test_a_damaged_file_is_told_and_left_alone(tmp_path: Path, content: bytes) -> None:
    """It may be repaired from a backup; until then nobody comes in by accident."""
    (tmp_path / "keys.json").write_bytes(content)
    with pytest.raises(StorageUnavailableError, match="damaged"):
        KeyFile(tmp_path).read()
    assert (tmp_path / "keys.json").read_bytes() == content


def test_keys_are_in_no_representation() -> None:
    """A keyring that ends up in a log shows nothing."""
    ring = Keyring("cookiesecret", "passwordhash", (), {"openai": "sk-secret"})
    assert not {word for word in ("cookiesecret", "passwordhash", "sk-secret") if word in repr(ring)}


def test_a_keyring_is_one_for_all_nodes(place: PostgresConfig) -> None:
    """Changes at the same time are all kept, and a node that watches has them without being asked."""
    nodes = [PostgresKeys(place) for _ in range(4)]
    watching = PostgresKeys(place)
    watching.start_following()
    try:
        key = watching.read().cookie_key
        start = threading.Barrier(4)

        def add(n: int) -> None:
            start.wait(20.0)
            token = ApiToken(f"tok_{n}", f"name {n} \x00", "digest", 1.0)
            nodes[n].change(lambda ring: replace(ring, tokens=(*ring.tokens, token)))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(4)))
        assert until(lambda: len(watching.read().tokens), lambda count: count == 4)
        assert {node.read().cookie_key for node in (*nodes, watching)} == {key}
        assert {token.name for token in watching.read().tokens} == {f"name {n} \x00" for n in range(4)}
    finally:
        watching.close()


@pytest.mark.anyio
async def test_a_login_at_one_node_counts_at_the_next_at_once(place: PostgresConfig) -> None:
    """L7: a browser's second request may reach a node before the news of its login does."""
    nodes = [PostgresKeys(place) for _ in range(2)]
    for keys in nodes:
        keys.start_following()
    try:
        clock = SystemClock()
        one, other = (Authenticator(keys, clock, password="correct horse") for keys in nodes)
        for cookie, known in ((await one.log_in("Firefox", "::1"), True), (f"{int(clock.now())}.forged", False)):
            _, credentials = await other.authenticate({"cookie": f"{COOKIE}={cookie}"}, secure=False)
            assert (credentials.login is not None) == known
    finally:
        for keys in nodes:
            keys.close()


def test_looking_at_a_keyring_makes_nothing(postgres: PostgresServer) -> None:
    """A command that only looks at an empty database leaves it empty."""
    url = postgres.database("untouched")
    assert PostgresKeys(PostgresConfig(url)).read().tokens == ()
    with psycopg.connect(url) as db:
        found = db.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'").fetchone()
    assert found == (0,)
