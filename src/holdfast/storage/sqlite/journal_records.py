"""The format of a row of the log: the events of one commit as consecutive records, each with its own checksum.
`storage.sqlite.journal_index` drops the records whose checksum is wrong.

A row per event would cost several times as much: SQLite's work is per row and per value, not per byte.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

_HEAD: Final = Struct("<qIII")  # alias of the run, seq, length of the frame, checksum
HEAD: Final = _HEAD.size
_SEALS: Final = 1 << 31  # A bit of the length: this is the terminal event
_LENGTH: Final = _SEALS - 1
_WORD: Final = 0xFFFFFFFF
NOBODY: Final = 0  # The alias of an erased record

_pack = _HEAD.pack
_unpack = _HEAD.unpack_from


class RecordRange(NamedTuple):
    """Consecutive intact records of one run, or one damaged record, none of whose fields is certain."""

    alias: int
    seq: int  # Of the first
    places: list[int]
    frames: list[bytes]  # Empty for a damaged record that is shorter than a head
    seals: bool  # The last is the terminal event
    whole: bool


def head(alias: int, seq: int, frame: bytes, seals: bool) -> bytes:
    """The head of a record. Its checksum covers head and frame."""
    size = len(frame) | _SEALS if seals else len(frame)
    return _pack(alias, seq, size, crc32(frame, (alias * 31 + seq + size) & _WORD))


def blank(length: int) -> bytes:
    """An erased record of this length."""
    return _pack(NOBODY, 0, length, 0) + bytes(length)


def frame_length(head: bytes) -> int:
    """The length of the frame that follows this head."""
    size: int = _unpack(head)[2]
    return size & _LENGTH


def ranges(blob: bytes) -> Iterator[RecordRange]:
    """The records of a row, without erased ones. Opening reads every record of the log: ranges take half the time of
    single records."""
    at, end = 0, len(blob)
    current = first = following = before = 0  # `before`: the size field of the last record
    places: list[int] = []
    frames: list[bytes] = []
    while (start := at + HEAD) <= end:
        alias, seq, size, crc = _unpack(blob, at)
        stop = start + (size & _LENGTH)
        frame = blob[start:stop]
        whole = alias != NOBODY and stop <= end and crc == crc32(frame, (alias * 31 + seq + size) & _WORD)
        if alias != current or seq != following or before > _LENGTH or not whole:
            if places:
                yield RecordRange(current, first, places, frames, before > _LENGTH, True)
            current, first, places, frames = alias, seq, [], []
        if whole:
            places.append(at)
            frames.append(frame)
        elif alias != NOBODY or stop > end:
            yield RecordRange(alias, seq, [at], [frame], size > _LENGTH, False)
        following, before, at = seq + 1 if whole else 0, size, stop
    if places:
        yield RecordRange(current, first, places, frames, before > _LENGTH, True)
    if at < end:
        yield RecordRange(NOBODY, 0, [at], [], False, False)


def frames_at(blob: bytes, places: Iterable[int], alias: int, seq: int) -> list[bytes]:
    """The frames of a run's records at these positions, from `seq` on, up to a damaged one. LookupError: another record
    is there."""
    frames: list[bytes] = []
    for at in places:
        start = at + HEAD
        if start > len(blob):
            break
        found, number, size, crc = _unpack(blob, at)
        if found != alias or number != seq:
            raise LookupError
        frame = blob[start : start + (size & _LENGTH)]
        if crc != crc32(frame, (alias * 31 + seq + size) & _WORD):
            break
        frames.append(frame)
        seq += 1
    return frames


def from_rows_per_event(db: sqlite3.Connection) -> None:
    """Migrate a log with a row per event. Damaged events remain damaged."""
    db.execute("ALTER TABLE log RENAME TO events")
    db.execute("CREATE TABLE log (n INTEGER PRIMARY KEY, records BLOB NOT NULL)")
    for n, alias, seq, crc, seals, frame in db.execute("SELECT n, run, seq, crc, seals, frame FROM events"):
        whole = isinstance(frame, bytes) and crc32(frame) == crc
        record = head(alias, seq, frame, bool(seals)) + frame if whole else _pack(alias, seq, 0, 0)
        db.execute("INSERT INTO log VALUES (?, ?)", (n, record))
    db.execute("DROP TABLE events")
