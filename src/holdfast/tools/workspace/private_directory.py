"""Creates and removes directories that only the server's account can enter."""

import os
import shutil
from pathlib import Path


def create_private_directory(path: Path) -> None:
    """Creates missing parents too, which `mkdir` would leave to the umask."""
    if not path.is_dir():
        create_private_directory(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def remove_directory(directory: Path) -> None:
    """Also if it does not exist, or a command removed its own permissions in it."""
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
    except PermissionError:
        _restore_permissions(directory)
        shutil.rmtree(directory)


def _restore_permissions(directory: Path) -> None:
    """Makes directories writable again. Symlinks are skipped: they may lead outside."""
    directory.chmod(0o700)
    for path, names, _ in os.walk(directory):
        for name in names:
            below = Path(path, name)
            if not below.is_symlink():
                below.chmod(0o700)
