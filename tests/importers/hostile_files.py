"""Small files that describe very much."""

import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Final

SESSIONS: Final = "CREATE TABLE sessions(id TEXT, title TEXT); INSERT INTO sessions VALUES ('s1', 't');"
MESSAGES: Final = "CREATE TABLE messages(id INTEGER, session_id TEXT, role TEXT, content TEXT);"


def write_database(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def write_endless_pages(path: Path) -> None:
    """A table whose pages all refer to the same page below them, 400 times each."""
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3000)"
    write_database(path, f"PRAGMA page_size = 4096; {SESSIONS} {MESSAGES}")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"{rows} INSERT INTO messages SELECT x, 'other', 'user', hex(zeroblob(50)) FROM n")
        connection.commit()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").fetchone()
    data = bytearray(path.read_bytes())
    at = (root - 1) * 4096
    (child,) = struct.unpack_from(">I", data, at + 8)
    for _ in range(6):
        data += _interior_page(child)
        child = len(data) // 4096
    data[at : at + 4096] = _interior_page(child)
    struct.pack_into(">I", data, 28, len(data) // 4096)
    path.write_bytes(data)


def _interior_page(child: int) -> bytes:
    cells = [struct.pack(">IB", child, n % 127) for n in range(400)]
    places = [4096 - 5 * (n + 1) for n in range(400)]
    head = struct.pack(">BHHHBI", 5, 0, 400, places[-1], 0, child) + struct.pack(">400H", *places)
    return head.ljust(places[-1], b"\0") + b"".join(reversed(cells))


def write_archive(path: Path, entries: int) -> None:
    """An archive whose directory has this many entries for one empty file."""
    member = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 0, 0, 0, 0, 0, 0, 1, 0) + b"a"
    entry = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    size, start = len(entry) * entries, len(member)
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, entries, entries, size, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + size, 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(member + entry * entries + end64 + locator + end)
