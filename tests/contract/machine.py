"""Other processes, small disks and filled directories, for tests of real storage."""

import select
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from holdfast.core.events import RunEnded, entry
from holdfast.core.ids import RunId
from holdfast.ports.journal import Append
from holdfast.storage.sqlite import SqliteJournal, SqliteStore, open_embedded
from holdfast.testing import FakeClock
from holdfast.testing.contracts.samples import GUARD, RID, adding, put, session

OTHER = RunId("run_2")


def start(script: str, *arguments: object) -> "subprocess.Popen[bytes]":
    """Another Python process; what it prints says how far it is."""
    command = [sys.executable, "-u", "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def next_line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], GUARD)
    assert ready, "the other process says nothing"
    return process.stdout.readline().decode().strip()


def snapshot(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file() and path.name != "lock"}


@contextmanager
def tmpfs(place: Path, options: str) -> Iterator[Path]:
    """A small file system of its own; the test is skipped, and says so, where that cannot be had."""
    place.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, timeout=GUARD, check=False)
    except FileNotFoundError:
        pytest.skip("NOT TESTED: this needs the command `mount`, which is not here")
    if done.returncode:
        pytest.skip(f"NOT TESTED: a tmpfs cannot be mounted here ({done.stderr.decode().strip()})")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, timeout=GUARD)


@asynccontextmanager
async def embedded(path: Path) -> AsyncIterator[tuple[SqliteStore, SqliteJournal]]:
    data, store, journal = open_embedded(path, FakeClock())
    yield store, journal
    await journal.close()
    await store.close()
    data.close()


@asynccontextmanager
async def sqlite_journal(directory: Path) -> AsyncIterator[SqliteJournal]:
    journal = SqliteJournal(directory / "journal.db")
    yield journal
    await journal.close()


async def filled(path: Path) -> None:
    """A directory with one session, one open run and one settled run."""
    async with embedded(path) as (store, journal):
        await put(store, session(title="kept"))
        await journal.append([adding(RID, 1, "a", "b", "c"), adding(OTHER, 1, "x", "y")])
        await journal.append([Append(OTHER, 1, [entry(3, RunEnded("complete"))], seals=True)])
        await journal.settled([OTHER])
