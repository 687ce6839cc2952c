"""The directories that users may choose for agents to work in. The setting is `agent_directories`."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.core.errors import InvalidInputError

_FIELD: Final = "cwd"


@dataclass(frozen=True, slots=True)
class DirectoryRules:
    """Directories below `allowed` can be chosen, except `private` ones. Links are resolved before they are compared."""

    allowed: tuple[Path, ...]
    private: tuple[Path, ...]  # With keys and other people's chats
    home: Path  # For `~`

    def resolve(self, text: str) -> Path:
        """The directory without links. Blocks. Raises InvalidInputError with the reason why it cannot be chosen."""
        if "\0" in text or not (text.startswith(("/", "~/")) or text == "~"):
            raise InvalidInputError(_FIELD, f"must be an absolute path, such as {self.home}/project")
        if not self.allowed:
            raise InvalidInputError(_FIELD, "cannot be chosen on this server: `agent_directories` is empty")
        written = self.home / text[2:] if text.startswith("~") else Path(text)
        try:
            path = Path(os.path.realpath(written))
            self._check_allowed(path)
            is_directory, can_enter = path.is_dir(), os.access(path, os.R_OK | os.X_OK)
            exists = is_directory or path.exists()
        except OSError as error:
            raise InvalidInputError(_FIELD, f"cannot be opened: {error.strerror}") from None
        if not exists:
            raise InvalidInputError(_FIELD, f"there is no directory {path}; create it, or choose another one")
        if not is_directory:
            raise InvalidInputError(_FIELD, f"{path} is not a directory")
        if not can_enter:
            raise InvalidInputError(_FIELD, f"the server's account may not read {path}")
        return path

    def _check_allowed(self, path: Path) -> None:
        if not any(path.is_relative_to(os.path.realpath(root)) for root in self.allowed):
            roots = ", ".join(str(root) for root in self.allowed)
            raise InvalidInputError(
                _FIELD, f"must be below {roots}; `agent_directories` in holdfast.toml allows others"
            )
        if any(path.is_relative_to(os.path.realpath(root)) for root in self.private):
            raise InvalidInputError(_FIELD, "is in the data directory of this server; choose another one")
