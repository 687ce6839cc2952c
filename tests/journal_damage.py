"""Damage to one record of a journal file that nobody has open."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from holdfast.storage.sqlite import journal_records

WAYS: Final = ("half", "flipped", "checksum", "length", "gone")


def tear(file: Path, run: str, how: str, seq: int | None = None) -> None:
    """Damage event `seq` of the run, or its last one."""
    with closing(sqlite3.connect(file)) as db, db:
        (alias,) = db.execute("SELECT alias FROM runs WHERE run = ?", (run,)).fetchone()
        found = [
            (row, blob, at, len(frame))
            for row, blob in db.execute("SELECT n, records FROM log ORDER BY n").fetchall()
            for some in journal_records.ranges(blob)
            for n, (at, frame) in enumerate(zip(some.places, some.frames, strict=True), some.seq)
            if some.alias == alias and seq in (None, n)
        ]
        row, blob, at, length = found[-1]
        db.execute("UPDATE log SET records = ? WHERE n = ?", (_damaged(blob, at, length, how), row))


def _damaged(blob: bytes, at: int, length: int, how: str) -> bytes:
    start, end = at + journal_records.HEAD, at + journal_records.HEAD + length
    middle = (start + end) // 2
    match how:
        case "half":  # as much of it as had been written
            return blob[:middle] + bytes(end - middle) + blob[end:]
        case "flipped":
            return blob[:middle] + bytes([blob[middle] ^ 1]) + blob[middle + 1 :]
        case "checksum":
            return blob[: start - 1] + bytes([blob[start - 1] ^ 1]) + blob[start:]
        case "length":  # reaches beyond the row
            return blob[: start - 6] + b"\x7f" + blob[start - 5 :]
        case "gone":
            return blob[:at] + journal_records.blank(length) + blob[end:]
        case _:
            raise AssertionError(how)
