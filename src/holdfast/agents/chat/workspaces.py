"""The directories that agents work in, one per session."""

import hashlib
import os
import shutil
from pathlib import Path

from holdfast.core.ids import SessionId
from holdfast.core.values import dataclass


def workspace(root: Path, sid: SessionId) -> Path:
    """The directory of a session. Ids of our own are plain names; one that is not becomes one."""
    plain = sid.replace("_", "").replace("-", "")
    name = sid if plain.isascii() and plain.isalnum() else hashlib.sha256(sid.encode()).hexdigest()
    return root / name


@dataclass(frozen=True, slots=True)
class WorkspaceDirectories:
    """`ports.Workspaces`."""

    root: Path

    def erase(self, sid: SessionId) -> None:
        directory = workspace(self.root, sid)
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:
            return
        except PermissionError:  # a command took its own rights away
            _open_up(directory)
            shutil.rmtree(directory)


def _open_up(directory: Path) -> None:
    """Links are left as they are: they may lead outside."""
    directory.chmod(0o700)
    for path, names, _ in os.walk(directory):
        for name in names:
            below = Path(path, name)
            if not below.is_symlink():
                below.chmod(0o700)
