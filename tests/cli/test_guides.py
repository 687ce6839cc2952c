"""Executes what the guides about moving and restoring a server tell people to type. Those about installing, services
and upgrades: `make test-install`; those about proxies: `tests/browser/test_reverse_proxy.py`."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from tests.cli.terminal import GUARD, ok
from tests.fork_server import ROOT
from tests.guides import guide, section, typed

DATA: Final = Path(".local/share/holdfast")  # Below the home directory
SHELL: Final = ["bash", "-euo", "pipefail", "-c"]


class Machine:
    """A home directory on a machine where `holdfast` is installed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / DATA
        self.bin = home / "bin"
        self.bin.mkdir(parents=True)
        self.add("holdfast", f'exec {shlex.quote(sys.executable)} -m holdfast "$@"')

    def add(self, program: str, script: str) -> None:
        (self.bin / program).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / program).chmod(0o700)

    @property
    def environment(self) -> Mapping[str, str]:
        return {"HOME": str(self.home), "PATH": f"{self.bin}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}

    def type(self, *commands: str, **variables: str) -> str:
        done = subprocess.run(
            [*SHELL, "\n".join(commands)],
            env={**self.environment, **variables},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=GUARD,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def serve(self, command: str, **variables: str) -> Iterator[httpx.Client]:
        """A server that a command of a guide starts, on a port that is free."""
        environment = {**self.environment, "HOLDFAST_PORT": "0", **variables}
        with subprocess.Popen(
            [*SHELL, f"exec {command}"], env=environment, cwd=self.home, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                assert " running at " in line, line
                with httpx.Client(base_url=line.split()[-1], trust_env=False) as client:
                    yield client
            finally:
                process.kill()


def titles(client: httpx.Client) -> list[str]:
    return [item["title"] for item in client.get("/api/sessions").raise_for_status().json()["items"]]


def test_a_server_moves_to_another_machine(tmp_path: Path) -> None:
    """The guide's commands take a chat from the old machine to a new one, where it is checked and shown."""
    old, new = Machine(tmp_path / "old"), Machine(tmp_path / "new")
    back_up, put_in_place = typed(guide("move"))
    ok("chat", "hello", data=old.data)
    new.add("pip", 'test "$*" = "install holdfast"')  # it is installed
    away = f'test "$1" = new-machine && cd {shlex.quote(str(new.home))} && shift && exec "$@"'
    old.add("ssh", away)
    old.type(*back_up)
    new.type(*put_in_place)
    with new.serve("holdfast --no-model") as client:
        assert titles(client) == ["hello"]


def test_a_backup_is_restored(tmp_path: Path) -> None:
    """The server runs on the backup itself, and at the usual path after the damaged directory was moved away."""
    machine = Machine(tmp_path / "home")
    backups = tmp_path / "backups"
    backups.mkdir()
    (start,), put_back = typed(section(guide("backup"), "## Restore"))
    ok("chat", "hello", data=machine.data)
    ok("backup", backups / "monday", data=machine.data)
    (machine.data / "holdfast.db").write_bytes(b"damaged")
    with machine.serve(f"{start} --no-model", BACKUPS=str(backups)) as client:
        assert titles(client) == ["hello"]
    machine.type(*put_back, BACKUPS=str(backups))
    assert (machine.home / DATA.with_name("holdfast.old") / "holdfast.db").read_bytes() == b"damaged"
    assert "hello" in ok("sessions", "list", data=machine.data)
