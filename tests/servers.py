"""Real servers for tests, from Debian's packages: each in a temporary directory of its own, on a free port.

PostgreSQL does not run as root: there it runs as the user that its package made."""

import contextlib
import fcntl
import functools
import itertools
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

import psycopg
import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

_GUARD: Final = 60.0
_PORTS: Final = itertools.cycle(range(12_000, 32_000))
_TEMPORARY: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
_MODES: Final = {signal.SIGINT: "fast", signal.SIGQUIT: "immediate"}
_QUICK: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")


@functools.cache
def _port_locks() -> BinaryIO:
    """A file in which a process has locked the byte of each port that it uses. The system unlocks them at its end."""
    return (Path(tempfile.gettempdir()) / f"holdfast-test-ports-{os.getuid()}").open("wb")


def free_port() -> int:
    """A port that stays free until a server of this process binds it: below those that the system gives to connections,
    and not used by another process of tests."""
    while True:
        port = next(_PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            fcntl.lockf(_port_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            probe.bind(("127.0.0.1", port))
            return port


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
        self._control = needs(postgres_program("pg_ctl"), "postgresql")
        self.directory = Path(tempfile.mkdtemp(prefix="hf-pg-"))
        self.port = free_port()
        self._durable = durable
        self._runs = False
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
        """To its end. Its output goes nowhere: a server that it leaves behind would keep a pipe open."""
        done = subprocess.run(
            [*self._as, *command],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_GUARD,
            cwd=self.directory,
        )
        log = self.directory / "log"
        assert done.returncode == 0, f"{command}: {log.read_text() if log.exists() else 'no log'}"

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
        log, options = str(self.directory / "log"), " ".join(f"-c {each}" for each in settings)
        self._run(self._control, "start", "-w", "-D", self._data, "-l", log, "-o", options)
        self._runs = True
        return self

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: a fast, orderly shutdown. SIGQUIT: a crash."""
        if self._runs:
            self._run(self._control, "stop", "-w", "-D", self._data, "-m", _MODES[how])
            self._runs = False

    def close(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def database(self, name: str) -> str:
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)


HOW_TO: Final = Path(__file__).parents[1] / "docs" / "how-to"


class Nginx:
    """With its defaults, except for what `block` says within `http`. `PORT` in it is a port that is free."""

    def __init__(self, block: str) -> None:
        self._program = needs(shutil.which("nginx") or shutil.which("/usr/sbin/nginx"), "nginx-light")
        self.directory = Path(tempfile.mkdtemp(prefix="hf-nginx-"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        temporary = "".join(f"{kind}_temp_path {self.directory}/{kind};\n" for kind in _TEMPORARY)
        (self.directory / "nginx.conf").write_text(
            f"daemon off; pid {self.directory}/pid; error_log {self.directory}/errors warn; worker_processes 1;\n"
            f"{'user root;' if os.geteuid() == 0 else ''}\n"
            "events { worker_connections 2000; }\n"
            f"http {{ access_log off; {temporary} {block.replace('PORT', str(self.port))} }}\n"
        )
        command = [self._program, "-p", str(self.directory), "-c", str(self.directory / "nginx.conf")]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until = time.monotonic() + _GUARD
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return
            assert self._process.poll() is None, "nginx did not start"
        raise TimeoutError("nginx did not start")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(_GUARD)
        shutil.rmtree(self.directory, ignore_errors=True)


def load_balancer(ports: Sequence[int]) -> Nginx:
    """In front of three nodes, set up by what docs/how-to/cluster.md shows."""
    (block,) = re.findall(r"```nginx\n(.*?)```", (HOW_TO / "cluster.md").read_text(), re.DOTALL)
    nodes = iter(ports)
    block = re.sub(r"server 10\.[0-9.]+:8484", lambda _: f"server 127.0.0.1:{next(nodes)}", block)
    # A node without a password takes nothing from a proxy that says so; the tests' nodes mostly have none.
    block = block.replace("proxy_set_header X-Forwarded-Proto $scheme;", "")
    return Nginx(block.replace("listen 443 ssl;", "listen 127.0.0.1:PORT;"))


class Wire:
    """A TCP connection to a server that can be cut: bytes then go nowhere, and nobody is told."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.refused = 0  # Connections that could not be made, because the server was away
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        """New connections get through again. Those that were cut stay so, as a firewall that lost its state does it."""
        stale, self._pairs = self._pairs, []
        self._open.set()
        for pair in stale:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)  # closing alone does not end a `recv` in another thread
                end.close()

    def close(self) -> None:
        self._listener.close()
        self.mend()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to), 5.0)
                far.settimeout(None)
            except OSError:
                self.refused += 1
                near.close()
                continue
            self._pairs.append((near, far))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _loses(self, source: socket.socket, target: socket.socket, got: bytes) -> bool:
        """Whether to close the connection instead of passing these bytes on."""
        return False

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while got := source.recv(65536):
                if not self._open.is_set():
                    return  # and neither end is told
                if self._loses(source, target, got):
                    break
                target.sendall(got)
        if self._open.is_set():
            for end in (source, target):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


class LossyRelay(Wire):
    """Closes the connection instead of relaying the first response to a request that starts with `request`: the server
    has done what it was asked, and the client gets no answer."""

    def __init__(self, url: str, request: bytes) -> None:
        super().__init__(int(url.rpartition(":")[2]))
        self.url = f"http://127.0.0.1:{self.port}"
        self.lost = threading.Event()
        self._request = request
        self._dropped: socket.socket | None = None

    def _loses(self, source: socket.socket, target: socket.socket, got: bytes) -> bool:
        if got.startswith(self._request) and not self.lost.is_set():
            self._dropped = target
            self.lost.set()
        return source is self._dropped


class RedisServer:
    def __init__(self, *, appendfsync: str = "always") -> None:
        self._program = needs(shutil.which("redis-server"), "redis-server")
        self.directory = Path(tempfile.mkdtemp(prefix="hf-redis-"))
        self.port = free_port()
        self._fsync = appendfsync
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> "RedisServer":
        settings = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "dir": str(self.directory),
            "appendonly": "yes",
            "appendfsync": self._fsync,
            "save": "",
            "daemonize": "no",
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen([self._program, *words], stdout=log, stderr=log)
        with redis.Redis(port=self.port, retry=Retry(ConstantBackoff(0.01), int(_GUARD / 0.01))) as db:
            db.ping()
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_GUARD)
            self._process = None

    def close(self) -> None:
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)
