"""The format of a segment: many frames of a settled run in one row, each after its length, with one checksum.

Only settled runs have segments: `archive` in `storage.sqlite.journal_writer` moves their events into them. Overview of
the journal: `storage.sqlite.journal`."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from holdfast.core.events import Entry

_LENGTH = 4
_MAX_ROW = 1 << 20  # Bytes at which a row is full. Reading a part of a run reads whole rows.


class Segment(NamedTuple):
    first_seq: int
    last_seq: int
    crc: int
    frames: bytes


def pack(entries: Sequence[Entry]) -> Iterator[Segment]:
    """Segments of consecutive entries."""
    blob, first = bytearray(), 0
    for item in entries:
        first = first or item.seq
        blob += len(item.frame).to_bytes(_LENGTH, "big") + item.frame
        if len(blob) >= _MAX_ROW or item is entries[-1]:
            yield Segment(first, item.seq, crc32(blob), bytes(blob))
            blob, first = bytearray(), 0


def unpack(segment: Segment) -> list[Entry]:
    """The entries, or none if the row is damaged."""
    if crc32(segment.frames) != segment.crc:
        return []
    found: list[Entry] = []
    blob, at = segment.frames, 0
    for seq in range(segment.first_seq, segment.last_seq + 1):
        start = at + _LENGTH
        at = start + int.from_bytes(blob[at:start], "big")
        found.append(Entry(seq, blob[start:at]))
    return found
