"""How a commit's events stand in one row of the journal: one record behind the other, each with its own checksum.

A row per event cost several times as much: SQLite works per row and per value, not per byte.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from functools import partial
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

_HEAD: Final = Struct("<qIII")  # alias of the run, seq, length of the frame, checksum
HEAD: Final = _HEAD.size
_SEALS: Final = 1 << 31
"""In the length: this is the terminal event."""
_WORD: Final = 0xFFFFFFFF
NOBODY: Final = 0
"""Alias of a record that was blanked."""

_pack = _HEAD.pack
_unpack = _HEAD.unpack_from


class Record(NamedTuple):
    at: int
    alias: int
    seq: int
    length: int
    """Of the frame; the record is longer by its head."""
    seals: bool
    whole: bool
    """Otherwise it is damaged, and nothing that it says is certain."""


_record = partial(tuple.__new__, Record)
"""In half the time that the class takes: opening reads every record of the log."""


def head(alias: int, seq: int, frame: bytes, seals: bool) -> bytes:
    """What stands before `frame`. The checksum covers both."""
    size = len(frame) | _SEALS if seals else len(frame)
    return _pack(alias, seq, size, crc32(frame, (alias * 31 + seq + size) & _WORD))


def blank(length: int) -> bytes:
    """A record of this length that is nobody's."""
    return _pack(NOBODY, 0, length, 0) + bytes(length)


def length(of: bytes) -> int:
    """Of the frame behind this head."""
    size: int = _unpack(of)[2]
    return size & ~_SEALS


def walk(blob: bytes) -> Iterator[Record]:
    """The records of a row. What cannot be told apart any more is one damaged record that reaches to the end."""
    at, end = 0, len(blob)
    while at < end:
        start = at + HEAD
        if start > end:
            yield Record(at, NOBODY, 0, end - start, False, False)
            return
        alias, seq, size, crc = _unpack(blob, at)
        length = size & ~_SEALS
        stop = start + length
        if stop > end:
            yield Record(at, alias, seq, end - start, size != length, False)
            return
        if alias != NOBODY:
            whole = crc == crc32(blob[start:stop], (alias * 31 + seq + size) & _WORD)
            yield _record((at, alias, seq, length, size != length, whole))
        at = stop


def frames_at(blob: bytes, places: Iterable[int], alias: int, seq: int) -> list[bytes]:
    """The frames of a run's records at these places, from `seq` on, up to a damaged one. LookupError: another record
    stands there."""
    frames: list[bytes] = []
    for at in places:
        start = at + HEAD
        if start > len(blob):
            break
        found, number, size, crc = _unpack(blob, at)
        if found != alias or number != seq:
            raise LookupError
        frame = blob[start : start + (size & ~_SEALS)]
        if crc != crc32(frame, (alias * 31 + seq + size) & _WORD):
            break
        frames.append(frame)
        seq += 1
    return frames


def from_rows_per_event(db: sqlite3.Connection) -> None:
    """What earlier versions kept as a row per event. Damaged ones stay damaged."""
    db.execute("ALTER TABLE log RENAME TO events")
    db.execute("CREATE TABLE log (n INTEGER PRIMARY KEY, records BLOB NOT NULL)")
    for n, alias, seq, crc, seals, frame in db.execute("SELECT n, run, seq, crc, seals, frame FROM events"):
        whole = isinstance(frame, bytes) and crc32(frame) == crc
        record = head(alias, seq, frame, bool(seals)) + frame if whole else _pack(alias, seq, 0, 0)
        db.execute("INSERT INTO log VALUES (?, ?)", (n, record))
    db.execute("DROP TABLE events")
