"""How a commit's events stand in one row of the journal: one record behind the other, each with its own checksum.

A row per event cost several times as much: SQLite works per row and per value, not per byte.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

_HEAD: Final = Struct("<qIII")  # alias of the run, seq, length of the frame, checksum
HEAD: Final = _HEAD.size
_SEALS: Final = 1 << 31
"""In the length: this is the terminal event."""
_LENGTH: Final = _SEALS - 1
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


class Stretch(NamedTuple):
    """Records of one run that follow one another, all of them whole."""

    alias: int
    seq: int
    """Of the first."""
    places: list[int]
    frames: list[bytes]
    seals: bool
    """The last is the terminal event."""
    end: int


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
    return size & _LENGTH


def stretches(blob: bytes) -> Iterator[Stretch]:
    """The records of a row, up to the first that is damaged or nobody's: opening reads every record of the log, and
    this takes half the time of `walk`."""
    at, end = 0, len(blob)
    whose = first = following = before = 0  # `before`: the size that the last record says
    places: list[int] = []
    frames: list[bytes] = []
    while (start := at + HEAD) <= end:
        alias, seq, size, crc = _unpack(blob, at)
        stop = start + (size & _LENGTH)
        frame = blob[start:stop]
        if alias == NOBODY or stop > end or crc != crc32(frame, (alias * 31 + seq + size) & _WORD):
            break
        if alias != whose or seq != following or before > _LENGTH:
            if places:
                yield Stretch(whose, first, places, frames, before > _LENGTH, at)
            whose, first, places, frames = alias, seq, [], []
        places.append(at)
        frames.append(frame)
        following, before, at = seq + 1, size, stop
    if places:
        yield Stretch(whose, first, places, frames, before > _LENGTH, at)


def walk(blob: bytes, at: int = 0) -> Iterator[Record]:
    """The records of a row, from the one at `at` on. What cannot be told apart any more is one damaged record that
    reaches to the end."""
    end = len(blob)
    while at < end:
        start = at + HEAD
        if start > end:
            yield Record(at, NOBODY, 0, end - start, False, False)
            return
        alias, seq, size, crc = _unpack(blob, at)
        length = size & _LENGTH
        stop = start + length
        if stop > end:
            yield Record(at, alias, seq, end - start, size != length, False)
            return
        if alias != NOBODY:
            whole = crc == crc32(blob[start:stop], (alias * 31 + seq + size) & _WORD)
            yield Record(at, alias, seq, length, size != length, whole)
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
        frame = blob[start : start + (size & _LENGTH)]
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
