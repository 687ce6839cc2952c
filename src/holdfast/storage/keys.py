"""The keyring: `keys.json` in the data directory, mode 0600. Read again when the file has changed, so that `holdfast
password` and `holdfast token` work beside a running server."""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.core.errors import StorageError, StorageUnavailable
from holdfast.ports import Keyring, Token
from holdfast.storage import disk

_Mark = tuple[int, int, int]


class KeyFile:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "keys.json"
        self._known: tuple[_Mark, Keyring] | None = None

    def read(self) -> Keyring:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            if not self._path.parent.is_dir():
                return Keyring(secrets.token_hex(32))  # there is nothing yet, and looking makes nothing
            return self.change(lambda keyring: keyring)
        except OSError as error:
            raise self._ours(error) from error
        mark = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._known is None or self._known[0] != mark:
            self._known = (mark, self._load())
        return self._known[1]

    def change(self, work: Callable[[Keyring], Keyring]) -> Keyring:
        try:
            with self._locked():
                before = self._load() if self._path.exists() else Keyring(secrets.token_hex(32))
                after = work(before)
                disk.write_private(self._path, json.dumps(keyring_to_json(after), indent=1).encode())
        except OSError as error:
            raise self._ours(error) from error
        return after

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, also between processes. The lock is a file of its own: this one is replaced."""
        disk.make_directory(self._path.parent)
        lock = os.open(self._path.with_name("keys.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _load(self) -> Keyring:
        try:
            return keyring_from_json(json.loads(self._path.read_bytes()))
        except OSError as error:
            raise self._ours(error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise StorageUnavailable(
                f"{self._path} is damaged. Restore it from a backup, or remove it: then the password, tokens and keys "
                "have to be set again."
            ) from error

    def _ours(self, error: OSError) -> StorageError:
        return disk.from_os(error, f"{self._path} cannot be used")


def keyring_to_json(keyring: Keyring) -> dict[str, Any]:
    return {
        "cookie_key": keyring.cookie_key,
        "password": keyring.password,
        "tokens": [
            {"id": token.id, "name": token.name, "sha256": token.sha256, "created_at": token.created_at}
            for token in keyring.tokens
        ],
        "provider_keys": dict(keyring.provider_keys),
    }


def keyring_from_json(data: Mapping[str, Any]) -> Keyring:
    tokens = tuple(Token(t["id"], t["name"], t["sha256"], t["created_at"]) for t in data["tokens"])
    return Keyring(data["cookie_key"], data["password"], tokens, dict(data["provider_keys"]))
