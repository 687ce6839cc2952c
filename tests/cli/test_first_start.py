"""The first start: `holdfast` without a command, the browser, the offer of the small model, the first password."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from holdfast.__main__ import with_default_command
from holdfast.system import unsupported_reason
from tests.cli.terminal import GUARD
from tests.fork_server import ROOT

OFFLINE = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}


def environment(**more: str) -> dict[str, str]:
    dropped = ("HOLDFAST_", "PIP_", "SSH_", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)} | more


class Screen:
    """A process at a terminal."""

    def __init__(self, *arguments: str, env: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        command = [sys.executable, "-m", "holdfast", *arguments]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env=env)
        os.close(slave)
        self.seen = ""

    def until(self, pattern: str) -> "re.Match[str]":
        ends_at = time.monotonic() + GUARD
        while (found := re.search(pattern, self.seen)) is None:
            readable = select.select([self._master], [], [], max(0.0, ends_at - time.monotonic()))[0]
            assert readable, self.seen
            self.seen += os.read(self._master, 65536).decode().replace("\r", "")
        return found

    def enter(self, text: str) -> None:
        os.write(self._master, f"{text}\n".encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@contextmanager
def at_terminal(*arguments: str, env: Mapping[str, str]) -> Iterator[Screen]:
    screen = Screen(*arguments, env=env)
    try:
        yield screen
    finally:
        screen.close()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["serve", "--open"]),
        (["--port", "0"], ["serve", "--open", "--port", "0"]),
        (["--no-model"], ["serve", "--open", "--no-model"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
        (["serve", "--port", "0"], ["serve", "--port", "0"]),
        (["models", "list"], ["models", "list"]),
    ],
)
def test_without_a_command_it_serves(arguments: list[str], expected: list[str]) -> None:
    """Only what names no command becomes `serve`."""
    assert with_default_command(arguments) == expected


@pytest.mark.parametrize(
    ("display", "opens"), [({"DISPLAY": ":0"}, True), ({}, False), ({"DISPLAY": ":0", "SSH_CONNECTION": "x"}, False)]
)
def test_the_browser_opens_on_a_desktop(tmp_path: Path, display: dict[str, str], opens: bool) -> None:
    """The address is printed, and opened if there is a display at this machine."""
    pipe, browser = tmp_path / "opened", tmp_path / "browser"
    os.mkfifo(pipe)
    browser.write_text(f'#!/bin/sh\necho "$1" > {pipe}\n')
    browser.chmod(0o755)
    opened = os.open(pipe, os.O_RDWR)
    env = environment(BROWSER=str(browser), **display)
    with at_terminal("--port", "0", "--no-model", "--data-dir", str(tmp_path / "data"), env=env) as screen:
        url = screen.until(r"Holdfast is running at (\S+)")[1]
        if opens:
            assert select.select([opened], [], [], GUARD)[0]
            assert os.read(opened, 1000).decode().strip() == url
        else:
            httpx.get(f"{url}/healthz", verify=False).raise_for_status()  # it is past the point where it would open
            screen.process.send_signal(signal.SIGTERM)
            assert screen.process.wait(GUARD) == 0
            assert not select.select([opened], [], [], 0)[0]
    os.close(opened)


def test_the_model_is_offered_once(tmp_path: Path) -> None:
    """A person at a terminal is asked at the first start, and not again after a no."""
    env = environment(HOLDFAST_MODELS_DIR=str(tmp_path / "models"))
    arguments = ("--port", "0", "--data-dir", str(tmp_path / "data"))
    with at_terminal(*arguments, env=env) as screen:
        screen.until(r"small model .* without an API key \(\d+ MB\)\? \[Y/n\]")
        screen.enter("n")
        screen.until("Holdfast is running at")
    with at_terminal(*arguments, env=env) as screen:
        screen.until("Holdfast is running at")
        assert "small model" not in screen.seen
    assert not (tmp_path / "models").exists()


def test_a_failed_download_does_not_stop_the_start(tmp_path: Path) -> None:
    """Without a network the reason is shown, and the server starts without the model."""
    env = environment(HOLDFAST_MODELS_DIR=str(tmp_path / "models"), **OFFLINE)
    with at_terminal("--port", "0", "--model", "--data-dir", str(tmp_path / "data"), env=env) as screen:
        screen.until("Holdfast is running at")
        assert "could not be downloaded: pip failed" in screen.seen
        assert "`holdfast models pull` tries again" in screen.seen


def test_a_second_start_shows_the_first_one(tmp_path: Path) -> None:
    """`holdfast` again shows where the page is and offers nothing; `serve`, as services start it, fails."""
    arguments = ("--port", "0", "--data-dir", str(tmp_path / "data"))
    env = environment(HOLDFAST_MODELS_DIR=str(tmp_path / "models"))
    with at_terminal(*arguments, "--no-model", env=env) as first:
        url = first.until(r"Holdfast is running at (\S+)")[1]
        with at_terminal(*arguments, env=env) as second:
            assert second.until(r"Holdfast is already running at (\S+)")[1] == url
            assert second.process.wait(GUARD) == 0
            assert "small model" not in second.seen
        with at_terminal("serve", *arguments, env=env) as third:
            assert third.until(r"Holdfast is already running at ([\w:/.]+)")[1] == url
            assert third.process.wait(GUARD) == 3
    with at_terminal(*arguments, "--no-model", env=env) as fourth:  # the first one was killed: its file is stale
        fourth.until("Holdfast is running at")


@contextmanager
def serving(data: Path) -> Iterator[tuple[list[str], str]]:
    """A server that requires a password: the lines before its address, and the address."""
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", "--data-dir", str(data)]
    env = environment(HOLDFAST_REQUIRE_PASSWORD="yes")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            while not lines or " running at " not in lines[-1]:
                assert select.select([process.stdout], [], [], GUARD)[0]
                lines.append(process.stdout.readline())
                assert lines[-1], lines
            yield lines[:-1], lines[-1].split()[-1]
        finally:
            process.kill()


def test_a_required_password_is_created_and_shown_once(data: Path) -> None:
    """The first start prints a password that logs in; without it nobody gets in, on loopback either. The second start
    prints none, and keeps the first."""
    with serving(data) as (lines, url), httpx.Client(base_url=url, verify=False) as client:
        found = re.search(r"^Password for logging in: ((?:[2-9a-z]{5}-){3}[2-9a-z]{5})$", lines[0].strip())
        assert found is not None, lines
        assert client.get("/api/sessions").status_code == 401
        client.post("/api/login", json={"password": found[1]}).raise_for_status()
        assert client.get("/api/sessions").status_code == 200
    assert found[1] not in (data / "keys.json").read_text()
    with serving(data) as (lines, url), httpx.Client(base_url=url, verify=False) as client:
        assert lines == []
        client.post("/api/login", json={"password": found[1]}).raise_for_status()


def test_a_required_password_that_is_removed_leaves_nothing_open(data: Path) -> None:
    """The same user on loopback is refused too, which a server without the setting would let in."""
    with serving(data) as (_, url):
        command = [sys.executable, "-m", "holdfast", "password", "--remove", "--data-dir", str(data)]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, timeout=GUARD)
        assert httpx.get(f"{url}/api/sessions", verify=False).status_code == 503


def test_windows_is_told_what_to_do() -> None:
    """An unsupported system gets the reason and two ways out, the others get nothing."""
    reason = unsupported_reason("win32")
    assert reason is not None
    assert "WSL 2" in reason
    assert "container" in reason
    assert (unsupported_reason("linux"), unsupported_reason("darwin")) == (None, None)


@pytest.mark.parametrize(
    ("hidden", "code", "message"),
    [
        ("psycopg", "import holdfast.app.cluster", "run pip install 'holdfast[cluster]'"),
        (
            "pydantic_ai",
            "from holdfast.models.pydantic_ai_models import missing_extra; print(missing_extra('anthropic'))",
            "pip install 'holdfast[providers]'",
        ),
        (
            "xllamacpp",
            "from holdfast.models.catalog import *; print(ModelCatalog(CatalogSettings(), None)._local_info().reason)",
            "pip install 'holdfast[local]'",
        ),
    ],
)
def test_a_missing_extra_is_named(hidden: str, code: str, message: str) -> None:
    """Where an extra is needed and missing, the message is the command that installs it."""
    program = f"import sys; sys.modules[{hidden!r}] = None; {code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert message in done.stdout + done.stderr
