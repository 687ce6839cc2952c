"""`server.json`: tells commands on this machine the server's address and token. Only its owner can read it. After a
crash it may be stale."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SERVER_FILE: Final = "server.json"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    url: str
    token: str
    socket: Path | None = None  # Set if the server runs in this process


def read_server_file(file: Path) -> ServerAddress | None:
    """The address, if a process with the recorded id exists. It may be another program: the caller must check."""
    try:
        data = json.loads(file.read_bytes())
        address, pid = ServerAddress(data["url"], data["token"]), int(data["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return address if _process_exists(pid) else None


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return pid > 0
