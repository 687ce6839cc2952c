"""The keyring in the data directory: `keys.json`, mode 0600. It is read again when the file changes, so that `holdfast
password` and `holdfast token` work next to a running server. In a cluster: `storage.postgres.keyring`."""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.core.errors import StorageUnavailableError
from holdfast.ports.keyring import ApiToken, Keyring, Login
from holdfast.storage import filesystem

_FileVersion = tuple[int, int, int]


class KeyFile:
    lag = 0.0

    def __init__(self, directory: Path) -> None:
        self._path = directory / "keys.json"
        self._unusable = f"{self._path} cannot be used"
        self._cached: tuple[_FileVersion, Keyring] | None = None

    def read(self) -> Keyring:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            if not self._path.parent.is_dir():
                return Keyring(secrets.token_hex(32))  # reading creates nothing
            return self.change(lambda keyring: keyring)
        except OSError as error:
            raise filesystem.from_os(error, self._unusable) from error
        version = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._cached is None or self._cached[0] != version:
            self._cached = (version, self._load())
        return self._cached[1]

    def change(self, work: Callable[[Keyring], Keyring]) -> Keyring:
        with filesystem.translated(self._unusable), self._locked():
            before = self._load() if self._path.exists() else Keyring(secrets.token_hex(32))
            after = work(before)
            filesystem.write_private(self._path, json.dumps(asdict(after), indent=1).encode())
        return after

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, also across processes. The lock is a separate file, because `keys.json` is replaced."""
        filesystem.make_directory(self._path.parent)
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
            raise filesystem.from_os(error, self._unusable) from error
        except (ValueError, KeyError, TypeError) as error:
            raise StorageUnavailableError(
                f"{self._path} is damaged. Restore it from a backup, or delete it and set the password, "
                "tokens and keys again."
            ) from error


def keyring_from_json(data: Mapping[str, Any]) -> Keyring:
    tokens = tuple(ApiToken(t["id"], t["name"], t["sha256"], t["created_at"]) for t in data["tokens"])
    logins = tuple(Login(**login) for login in data.get("logins", ()))  # not in files of version 0.1
    keys, configured = dict(data["provider_keys"]), data.get("configured_password")
    return Keyring(data["cookie_key"], data["password"], tokens, keys, logins, configured)
