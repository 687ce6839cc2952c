"""Imports on a disk that is full or fails: nothing is wrong with the file then, and nobody is told so."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from holdfast.core.errors import StorageFullError, StorageUnavailableError
from holdfast.engine import export_import
from holdfast.importers.scratch import Scratch
from holdfast.importers.section_spool import SectionSpool
from holdfast.importers.sources import convert
from tests.engine.test_import_reader import END, MESSAGE, SESSION
from tests.importers.test_chatgpt import conversation, node
from tests.openai.in_process import fetching


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files can be made, but nothing can be written to them."""

    def make(*_: Any, **__: Any) -> BinaryIO:
        return open("/dev/full", "r+b")

    monkeypatch.setattr(tempfile, "TemporaryFile", make)


def write(path: Path) -> Path:
    """A chat whose messages do not fit in memory."""
    questions = [node(f"u{n}", f"u{n - 1}" if n else "root", "user", "x" * 100_000) for n in range(30)]
    path.write_text(json.dumps([conversation(*questions, conversation_id="large")]))
    return path


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_no_damaged_file(tmp_path: Path) -> None:
    """The scratch file and the spool say that the disk is full, also while they are closed."""
    source = write(tmp_path / "conversations.json")
    with pytest.raises(StorageFullError, match=r"cannot be used: no space left on device\. Free some disk space\."):
        convert(source, "chatgpt", list, lambda done, total: None)
    with tempfile.TemporaryFile() as file:
        spool = SectionSpool(file)
        with pytest.raises(StorageFullError):
            convert(source, "chatgpt", spool.add, lambda done, total: None, scratch=InMemory())
        with pytest.raises(OSError, match="No space left"):
            file.close()


class InMemory(Scratch):
    """A scratch file that never reaches the disk."""

    def _write(self) -> None: ...


def test_a_disk_that_fails_is_no_damaged_file(tmp_path: Path) -> None:
    """A directory that is gone is the server's problem."""
    source = write(tmp_path / "conversations.json")
    scratch = Scratch(tmp_path / "gone")
    with pytest.raises(StorageUnavailableError, match="no such file or directory"):
        convert(source, "chatgpt", list, lambda done, total: None, scratch=scratch)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Wherever in the conversion that turns out."""
    source = tmp_path / "conversations.json"
    source.symlink_to(source)
    with pytest.raises(Exception, match=r"conversations.json: cannot be read: "):
        convert(source, None, list, lambda done, total: None)


def test_the_command_says_that_its_temporary_file_is_too_large(tmp_path: Path) -> None:
    """Not that the export cannot be read."""
    source = write(tmp_path / "conversations.json")
    limit: Callable[[], None] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # noqa: E731
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "import", str(source), "--data-dir", str(tmp_path / "data")],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode != 0
    assert "cannot be read" not in done.stderr.lower()
    assert "file too large" in " ".join(done.stderr.lower().split())
    assert "Traceback" not in done.stderr


@pytest.mark.anyio
@pytest.mark.usefixtures("full_disk")
async def test_the_server_answers_that_its_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the status of it, or as the end of the stream; a later import is not affected."""
    monkeypatch.setattr(export_import, "_IN_MEMORY", 10)
    section = b"".join(json.dumps(line).encode() + b"\n" for line in (SESSION, MESSAGE, END))
    async with fetching(tmp_path) as (_, _, client):
        refused = await client.post("/api/import", content=section, headers={"Content-Type": "application/x-ndjson"})
        assert (refused.status_code, refused.json()["type"]) == (507, "storage-full")
        assert "no space left on device. Free some disk space." in refused.json()["detail"]
        source = write(tmp_path / "conversations.json").read_bytes()
        headers = {"Content-Type": "application/octet-stream"}
        streamed = (await client.post("/api/import/file", content=source, headers=headers)).text
        assert "event: failed" in streamed
        assert '"type": "storage-full"' in streamed
        monkeypatch.undo()
        taken = await client.post("/api/import", content=section, headers={"Content-Type": "application/x-ndjson"})
        assert taken.status_code == 201
