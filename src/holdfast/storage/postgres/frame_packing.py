"""The format of events in one value: each frame after its length and checksum. The concatenation of two values is a
value, so PostgreSQL can join the appends of a run. A run is read up to its first damaged frame (`unpack`)."""

import struct
from collections.abc import Sequence
from typing import Final
from zlib import crc32

from holdfast.core.events import Entry

_HEAD: Final = struct.Struct(">II")


def pack(entries: Sequence[Entry]) -> bytes:
    pieces: list[bytes] = []
    for _, frame in entries:
        pieces += (_HEAD.pack(len(frame), crc32(frame)), frame)
    return b"".join(pieces)


def unpack(first: int, last: int, packed: bytes) -> tuple[list[Entry], bool]:
    """The entries up to a damaged one (J7), and whether they are complete."""
    found: list[Entry] = []
    at = 0
    for seq in range(first, last + 1):
        start = at + _HEAD.size
        if start > len(packed):
            return found, False
        size, crc = _HEAD.unpack_from(packed, at)
        at = start + size
        frame = packed[start:at]
        if len(frame) != size or crc32(frame) != crc:
            return found, False
        found.append(Entry(seq, frame))
    return found, True
