"""`holdfast serve`, refusals to start, and settings of commands."""

import asyncio
import json
import os
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from holdfast.cli.app import build
from holdfast.cli.context import CliContext
from holdfast.storage.sqlite import DataDir
from tests.cli.terminal import GUARD, Done, as_json, holdfast, ok, refused
from tests.contract.machine import filled, tmpfs
from tests.fork_server import ROOT


@contextmanager
def serving(
    *arguments: str, environment: dict[str, str] | None = None
) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """`holdfast serve` itself, and the address it printed."""
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", *arguments]
    variables = os.environ | (environment or {})
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=variables, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], GUARD)[0]
            yield process, process.stdout.readline().decode().split()[-1]
        finally:
            if process.poll() is None:
                process.kill()


def test_serve_says_where_and_stops_when_told(data: Path) -> None:
    """The server prints its address, keeps `server.json` private, and exits with 0 on SIGTERM."""
    with serving("--data-dir", str(data)) as (process, url):
        assert httpx.get(f"{url}/healthz", verify=False).json() == {"status": "ok"}
        file = data / "server.json"
        assert (file.stat().st_mode & 0o777, data.stat().st_mode & 0o777) == (0o600, 0o700)
        assert json.loads(file.read_bytes())["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(GUARD) == 0
        assert not file.exists()


def test_a_background_task_that_fails_does_not_end_the_server(data: Path, tmp_path: Path) -> None:
    """E1: the warm-up after the start meets the limit of open files: that is logged, and the server goes on."""
    (tmp_path / "aiohttp.py").write_text('raise OSError(24, "Too many open files")')
    with serving("--data-dir", str(data), environment={"PYTHONPATH": str(tmp_path)}) as (process, url):
        assert process.stderr is not None
        output = b""
        while b"[Errno 24]" not in output:
            assert select.select([process.stderr], [], [], GUARD)[0], output
            output += (line := os.read(process.stderr.fileno(), 65536))
            assert line, output
        assert b"loading modules in the background failed" in output
        assert httpx.get(f"{url}/healthz", verify=False).json() == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(GUARD) == 0


def test_a_flag_overrides_the_file(tmp_path: Path) -> None:
    """The data directory comes from the named file, or from the flag."""
    file = tmp_path / "holdfast.toml"
    file.write_text('data_dir = "from-file"\n')
    for data, expected in ((None, tmp_path / "from-file"), (tmp_path / "flag", tmp_path / "flag")):
        assert ok("chat", "hello", "--config", file, data=data) == "hello\n"
        assert (expected / "holdfast.db").exists()


def in_use(data: Path) -> Iterator[None]:
    with closing(DataDir.open(data)):
        yield


def damaged(data: Path) -> Iterator[None]:
    (data / "holdfast.db").write_bytes(b"x" * 200)
    yield


def newer(data: Path) -> Iterator[None]:
    with closing(sqlite3.connect(data / "holdfast.db")) as db:
        db.execute("PRAGMA user_version = 9999")
    yield


def read_only(data: Path) -> Iterator[None]:
    with tmpfs(data.with_name("disk"), "size=9m") as disk:
        shutil.move(data, disk / "data")
        data.symlink_to(disk / "data")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        yield


def full(data: Path) -> Iterator[None]:
    with tmpfs(data.with_name("disk"), "size=1m") as disk:
        with suppress(OSError):
            (disk / "filler").write_bytes(bytes(2_000_000))
        shutil.rmtree(data)
        data.symlink_to(disk / "data")
        (disk / "data").mkdir()
        yield


@pytest.mark.parametrize(
    ("prepare", "code", "message"),
    [
        (in_use, 3, "is in use by process"),
        (damaged, 1, "holdfast.db is not a database"),
        (newer, 1, "was written by a newer Holdfast"),
        (read_only, 1, "read-only file system"),
        (full, 1, "Free some disk space"),
    ],
)
def test_a_refusal_to_start_is_one_sentence_and_an_exit_code(
    data: Path, prepare: Callable[[Path], Iterator[None]], code: int, message: str
) -> None:
    """With the real agents too, whose connections run in a task group: no traceback of an exception group."""
    asyncio.run(filled(data))
    with contextmanager(prepare)(data):
        command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", "--data-dir", str(data)]
        if prepare is in_use:
            own = subprocess.run(command, capture_output=True, timeout=GUARD, cwd=ROOT, check=False)
            done = Done(own.returncode, own.stdout, own.stderr)
        else:
            done = holdfast(*command[3:])
    assert done.returncode == code, done.stderr
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("prepare", "code", "message"),
    [(in_use, 3, f"process {os.getpid()}"), (damaged, 1, "holdfast.db is not a database")],
    ids=["in-use", "damaged"],
)
@pytest.mark.parametrize("command", [["sessions", "list"], ["chat", "hello"], ["backup", "copy"]], ids=" ".join)
def test_a_directory_that_cannot_be_opened_is_named(
    data: Path, prepare: Callable[[Path], Iterator[None]], code: int, message: str, command: list[str]
) -> None:
    """A lock whose holder does not answer, or a damaged database, is reported in one line by every command."""
    asyncio.run(filled(data))
    with contextmanager(prepare)(data):
        refused(*command, data=data, code=code, message=message)


def test_config_show_prints_values_and_sources(data: Path, tmp_path: Path) -> None:
    """Flags, file and defaults are told apart, as text and as JSON; a password is masked; nothing is created."""
    file = tmp_path / "my.toml"
    file.write_text('log_level = "info"\npassword = "swordfish"\n[tools]\nshell = "deny"\n')
    shown = ok("config", "show", "--config", file, data=data)
    assert f"data_dir\t{data}\t--data-dir\n" in shown
    assert "port\t8484\tdefault\n" in shown
    assert f"password\t********\t{file}\n" in shown
    assert "swordfish" not in shown
    assert {"name": "tools.shell", "value": "deny", "source": str(file)} in as_json(
        "config", "show", "--config", file, data=data
    )
    assert not data.exists()


def test_a_stale_file_that_names_a_stranger(data: Path) -> None:
    """A stale `server.json` may name another process and another program's port; neither is used."""
    ok("chat", "hello", data=data)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        stranger.close()
        (data / "server.json").write_text(json.dumps({"url": url, "token": "x", "pid": os.getpid()}))
    assert ok("sessions", "list", data=data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "0", "--host", "0.0.0.0"], "no password is set"),
        (["--port", "99999"], "65535"),
        (["--port", "0", "--config", "/nowhere/holdfast.toml"], "cannot be read"),
    ],
)
def test_a_wrong_setting_is_named(data: Path, arguments: list[str], message: str) -> None:
    """A wrong setting is named, with exit code 2, before anything is opened."""
    refused("serve", *arguments, data=data, code=2, message=message)


def test_a_port_in_use_is_named(data: Path) -> None:
    """If another program uses the port, the error suggests --port and the exit code is 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused("serve", "--port", taken.getsockname()[1], data=data, code=2, message="another port with --port")


def test_reading_makes_no_directory(data: Path) -> None:
    """A mistyped data directory is an error and is not created."""
    for command in (["sessions", "list"], ["export"], ["backup", data.parent / "copy"]):
        refused(*command, data=data, message="No data in")
    assert not data.exists()


def test_every_command_has_help_with_an_example() -> None:
    """`--help` of each command contains an example of it."""
    app = build(CliContext())
    groups = {f"{group.name} ": group.typer_instance or app for group in app.registered_groups}
    names = [
        f"{prefix}{command.name or command.callback.__name__}"
        for prefix, group in {"": app, **groups}.items()
        for command in group.registered_commands
        if command.callback is not None
    ]
    assert len(names) == 52
    for name in names:
        shown = CliRunner().invoke(app, [*name.split(), "--help"], prog_name="holdfast").output
        assert re.search(rf"Examples?:\s+holdfast {name}", shown), shown
