"""Working directories of agents, one per session."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.ids import SessionId


def workspace(root: Path, sid: SessionId) -> Path:
    """The session's directory. An imported id that is not a plain file name is hashed."""
    plain = sid.replace("_", "").replace("-", "")
    name = sid if plain.isascii() and plain.isalnum() else hashlib.sha256(sid.encode()).hexdigest()
    return root / name


def agent_session_file(root: Path, sid: SessionId) -> Path:
    """The file that records which session of an agent program belongs to this session. It is next to the workspace,
    because the program's session is on this machine too."""
    return root / f"{workspace(root, sid).name}.agent.json"


@dataclass(frozen=True, slots=True)
class WorkspaceDirectories:
    """`ports.files.Workspaces`."""

    root: Path

    def erase(self, sid: SessionId) -> None:
        directory = workspace(self.root, sid)
        agent_session_file(self.root, sid).unlink(missing_ok=True)
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:
            return
        except PermissionError:  # a command removed its own permissions
            _restore_permissions(directory)
            shutil.rmtree(directory)


def _restore_permissions(directory: Path) -> None:
    """Make directories writable again. Symlinks are skipped: they may lead outside."""
    directory.chmod(0o700)
    for path, names, _ in os.walk(directory):
        for name in names:
            below = Path(path, name)
            if not below.is_symlink():
                below.chmod(0o700)
