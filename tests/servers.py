"""Real PostgreSQL servers for tests, from Debian's packages: each in a temporary directory of its own, on a free port.

PostgreSQL does not run as root: there it runs as the user that its package made."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import psycopg
import pytest

_GUARD: Final = 60.0
_QUICK: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def needs(program: str | None, package: str) -> str:
    """The program, or a loud skip."""
    if program is None:
        pytest.skip(f"SKIPPED FOR WANT OF A SERVER: install Debian's package {package}, or run `make test` as root")
    return program


def postgres_program(name: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


class PostgresServer:
    """`durable`: with everything on that makes a commit outlive a crash."""

    def __init__(self, *, durable: bool = False) -> None:
        self._initdb = needs(postgres_program("initdb"), "postgresql")
        self._postgres = needs(postgres_program("postgres"), "postgresql")
        self.directory = Path(tempfile.mkdtemp(prefix="hf-pg-"))
        self.port = free_port()
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._as: list[str] = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            self._as = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self._run(self._initdb, "-D", self._data, "-U", "holdfast", "-A", "trust", "--no-sync", "-E", "UTF8")

    @property
    def _data(self) -> str:
        return str(self.directory / "data")

    def _run(self, *command: str) -> None:
        subprocess.run([*self._as, *command], check=True, capture_output=True, timeout=_GUARD, cwd=self.directory)

    def url(self, database: str = "postgres", *, port: int | None = None) -> str:
        return f"postgresql://holdfast@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> "PostgresServer":
        settings = (() if self._durable else _QUICK) + (
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            f"unix_socket_directories={self.directory}",
            "max_connections=200",
            "shared_buffers=64MB",
        )
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as, self._postgres, "-D", self._data, *(word for each in settings for word in ("-c", each))],
                stdout=log,
                stderr=log,
                cwd=self.directory,
            )
        until = time.monotonic() + _GUARD
        while time.monotonic() < until:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return self
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.directory / "log").read_text()
                time.sleep(0.05)  # a server tells nobody that it is ready
        raise TimeoutError("PostgreSQL did not start")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: a fast, orderly shutdown. SIGQUIT: a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_GUARD)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def database(self, name: str) -> str:
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)
