"""Imports of 100,000 messages: `holdfast import` as a process of its own, through a running server and without one.

They are to take less than a minute. What is measured is the processor time, because a busy machine makes the other time
longer; an idle one takes about as long as the two processes need in turn."""

import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from holdfast.importers import json_objects, scratch
from holdfast.importers.sources import convert
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import http_forker
from tests.importers.large_exports import APPS, write_export

__all__ = ["http_forker"]

SECONDS: Final = 30.0  # Of the processor, for each of the processes
MEGABYTES: Final = 200
CODE: Final = """
import atexit, sys, time
atexit.register(lambda: sys.stderr.write(open("/proc/self/status").read() + f"CPU: {time.process_time()}"))
from holdfast.__main__ import main
main()
"""


def peak(status: str) -> int:
    """The most physical memory that a process used, in megabytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None, status
    return int(found[1]) // 1024


def processor_time(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("app", APPS)
def test_the_messages_of_a_chat_are_not_held_together(
    app: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer chat takes a little more memory for each message, but not for its text, however it is written."""
    monkeypatch.setattr(json_objects, "_CHUNK", 16 * 1024)
    monkeypatch.setattr(scratch, "_BUFFER", 16 * 1024)

    def measure(turns: int) -> int:
        source = write_export(app, tmp_path / str(turns), 1, turns)

        def write(lines: Iterable[bytes]) -> None:
            assert sum(line.startswith(b'{"type":"message"') for line in lines) == 2 * turns

        tracemalloc.start()
        try:
            convert(source, None, write, lambda done, total: None)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert measure(900) - measure(300) < 2 * 600 * BYTES


LARGE: Final = [pytest.mark.soak, pytest.mark.timeout(600)]
CASES: Final = [
    (app, served, chats, turns)
    for app in APPS
    for served in (False, True)
    for chats, turns in ((1000, 50), (20, 2500), (1, 50_000))
]
BYTES: Final = 1000  # Of memory for each message of a chat: a tenth of a gigabyte for 100,000


@pytest.mark.parametrize(
    ("app", "served", "chats", "turns"),
    [("claude", False, 20, 5), *(pytest.param(*case, marks=LARGE) for case in CASES)],
)
def test_many_messages(
    app: str, served: bool, chats: int, turns: int, tmp_path: Path, http_forker: ServerForker
) -> None:
    """Each message is imported once, in time and within 200 MB; a second import adds nothing."""
    source = write_export(app, tmp_path, chats, turns)
    data = tmp_path / "data"
    command = [sys.executable, "-c", CODE, "import", "--from", app, "--json", "--data-dir", str(data), str(source)]

    def import_all() -> tuple[int, int, int]:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert float(done.stderr.rpartition("CPU: ")[2]) < SECONDS
        assert peak(done.stderr) < MEGABYTES
        summary = json.loads(done.stdout)
        assert summary["skipped_count"] == 0
        return summary["imported"], summary["unchanged"], summary["messages"]

    if not served:
        assert import_all() == (chats, 0, 2 * chats * turns)
        assert import_all() == (0, chats, 0)
        return
    with Served(http_forker, data) as server:
        server.ready()
        before = processor_time(server.process.pid)
        assert import_all() == (chats, 0, 2 * chats * turns)
        assert processor_time(server.process.pid) - before < SECONDS
        assert peak(Path(f"/proc/{server.process.pid}/status").read_text()) < MEGABYTES
