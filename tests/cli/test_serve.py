"""Starting a server from the command line, and what is said when that cannot be done."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from holdfast.storage.sqlite import DataDir
from tests.cli.terminal import GUARD, holdfast, ok
from tests.http.client import Served
from tests.nursery import ROOT


@contextmanager
def serving(*arguments: str) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """`holdfast serve` itself, and the address it printed."""
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], GUARD)[0]
            yield process, process.stdout.readline().decode().split()[-1]
        finally:
            if process.poll() is None:
                process.kill()


def test_serve_says_where_and_stops_when_told(data: Path) -> None:
    """The address is printed, the server answers there, `server.json` is private, and SIGTERM ends it with 0."""
    with serving("--data-dir", str(data)) as (process, url):
        assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}
        file = data / "server.json"
        assert (file.stat().st_mode & 0o777, data.stat().st_mode & 0o777) == (0o600, 0o700)
        assert json.loads(file.read_bytes())["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(GUARD) == 0
        assert not file.exists()


def test_settings_come_from_flags_variables_and_the_file(tmp_path: Path) -> None:
    """A flag goes before a variable, and that before the file."""
    file = tmp_path / "holdfast.toml"
    file.write_text('data_dir = "from-file"\n')
    assert ok("chat", "hello", "--config", file) == "hello\n"
    assert (tmp_path / "from-file" / "holdfast.db").exists()
    environ = {"HOLDFAST_DATA_DIR": str(tmp_path / "from-variable")}
    assert holdfast("chat", "hello", "--config", file, environ=environ).returncode == 0
    assert (tmp_path / "from-variable" / "holdfast.db").exists()
    assert holdfast("chat", "hello", "--config", file, data=tmp_path / "flag", environ=environ).returncode == 0
    assert (tmp_path / "flag" / "holdfast.db").exists()


def test_a_second_server_is_refused(server: Served) -> None:
    """The directory is in use: exit code 3, and who has it."""
    done = holdfast("serve", "--port", "0", data=server.data_dir)
    assert done.returncode == 3
    assert f"process {server.process.pid}" in done.stderr.decode()


def test_a_directory_in_use_by_something_silent(data: Path) -> None:
    """The lock is held and nobody answers: exit code 3, for every command that needs the data."""
    ok("chat", "hello", data=data)
    held = DataDir.open(data)
    try:
        for command in (["sessions", "list"], ["chat", "hello"], ["backup", data.parent / "copy"]):
            done = holdfast(*command, data=data)
            assert done.returncode == 3, done.stderr.decode()
            assert f"process {os.getpid()}" in done.stderr.decode()
    finally:
        held.close()


def test_a_damaged_directory_is_named(data: Path) -> None:
    """Where no server runs, a database that cannot be read is said to be one, in a line and with exit code 1."""
    ok("chat", "hello", data=data)
    (data / "holdfast.db").write_bytes(b"x" * 200)
    for command in (["sessions", "list"], ["chat", "hello"]):
        done = holdfast(*command, data=data)
        assert done.returncode == 1
        assert "holdfast.db is not a database" in done.stderr.decode()
        assert "Traceback" not in done.stderr.decode()


def test_a_stale_file_that_names_a_stranger(data: Path) -> None:
    """After a crash another program may have the port, and another process the number: neither is taken for ours."""
    ok("chat", "hello", data=data)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        stranger.close()
        (data / "server.json").write_text(json.dumps({"url": url, "token": "x", "pid": os.getpid()}))
    assert ok("sessions", "list", data=data)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--host", "0.0.0.0"], 2, "there is no password"),
        (["--port", "99999"], 2, "65535"),
        (["--config", "/nowhere/holdfast.toml"], 2, "cannot be read"),
    ],
)
def test_a_wrong_setting_is_named(data: Path, arguments: list[str], code: int, said: str) -> None:
    """Before anything is opened: exit code 2 and the setting's name."""
    done = holdfast("serve", *arguments, *([] if "--port" in arguments else ["--port", "0"]), data=data)
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr.decode()


def test_a_port_in_use_is_named(data: Path) -> None:
    """Another program has the port: exit code 2, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = holdfast("serve", "--port", taken.getsockname()[1], data=data)
    assert done.returncode == 2
    assert "choose another with --port" in done.stderr.decode()


def test_reading_makes_no_directory(data: Path) -> None:
    """A mistyped directory is said to be empty, and is not made."""
    for command in (["sessions", "list"], ["export"], ["backup", data.parent / "copy"]):
        done = holdfast(*command, data=data)
        assert done.returncode == 1
        assert "There is nothing in" in done.stderr.decode()
    assert not data.exists()


COMMANDS = [
    *(["serve"], ["chat"], ["export"], ["import"], ["backup"], ["doctor"], ["password"]),
    *(["runs", name] for name in ("list", "show", "replay", "follow")),
    *(["sessions", name] for name in ("list", "search", "show")),
    *(["models", name] for name in ("list", "pull")),
    *(["token", name] for name in ("create", "list", "revoke")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    """`--help` says what it does and shows how."""
    shown = ok(*command, "--help")
    assert "Example" in shown
    assert f"holdfast {' '.join(command)}" in shown
