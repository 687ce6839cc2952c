"""Where a server is. `server.json` says so while one runs; after a crash it says what is no longer true."""

import json
import os
from pathlib import Path

from holdfast.core.values import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    url: str
    token: str
    socket: Path | None = None
    """Where the server is one of our own, in this process."""


def written(file: Path) -> Place | None:
    """What the file says, if a process of that number lives. It may be another one: whoever calls must ask it."""
    try:
        data = json.loads(file.read_bytes())
        place, pid = Place(data["url"], data["token"]), int(data["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return place if _lives(pid) else None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is somebody else's
    return pid > 0
