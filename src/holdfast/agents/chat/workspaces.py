"""Working directories of agents, one per session. Other directories that agent programs may work in:
`agents.acp.directories`. When the directory of a session is erased: `engine.retention`."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.core.ids import SessionId
from holdfast.tools.workspace.private_directory import remove_directory
from holdfast.tools.workspace.snapshots.database import expire_snapshots
from holdfast.tools.workspace.trash import SessionTrash

WORKSPACES: Final = "workspaces"  # The directory, inside the data directory, that agents work in
SNAPSHOTS: Final = "snapshots"  # The directory, inside the data directory, of what files were before runs changed them
TRASH: Final = "trash"  # The directory, inside the data directory, of what people deleted


def workspace(root: Path, sid: SessionId) -> Path:
    """The session's directory. An imported id that is not a plain file name is hashed."""
    plain = sid.replace("_", "").replace("-", "")
    name = sid if plain.isascii() and plain.isalnum() else hashlib.sha256(sid.encode()).hexdigest()
    return root / name


def agent_session_file(root: Path, sid: SessionId) -> Path:
    """The file that records which session of an agent program belongs to this session. It is next to the workspace,
    because the program's session is on this machine too."""
    return root / f"{workspace(root, sid).name}.agent.json"


def session_trash(data_dir: Path, sid: SessionId) -> SessionTrash:
    """What people deleted in the session's working directory, which may be elsewhere."""
    return SessionTrash(workspace(data_dir / TRASH, sid))


def session_snapshots(data_dir: Path, sid: SessionId) -> Path:
    """The directory of what files were before the session's runs changed them."""
    return workspace(data_dir / SNAPSHOTS, sid)


@dataclass(frozen=True, slots=True)
class WorkspaceDirectories:
    """`ports.files.WorkspaceEraser`."""

    data_dir: Path

    def erase(self, sid: SessionId) -> None:
        root = self.data_dir / WORKSPACES
        agent_session_file(root, sid).unlink(missing_ok=True)
        remove_directory(session_snapshots(self.data_dir, sid))
        remove_directory(session_trash(self.data_dir, sid).directory)
        remove_directory(workspace(root, sid))

    def expire(self, now: float) -> None:
        for directory in _directories(self.data_dir / TRASH):
            trash = SessionTrash(directory)
            trash.recover(self.data_dir)
            trash.expire(now)
        for directory in _directories(self.data_dir / SNAPSHOTS):
            expire_snapshots(directory, now)


def _directories(parent: Path) -> list[Path]:
    try:
        return list(parent.iterdir())
    except FileNotFoundError:
        return []
