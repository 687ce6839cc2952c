"""Creates directories that only the server's account can enter."""

from pathlib import Path


def create_private_directory(path: Path) -> None:
    """Creates missing parents too, which `mkdir` would leave to the umask."""
    if not path.is_dir():
        create_private_directory(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
