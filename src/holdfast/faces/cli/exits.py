"""How a command ends. One table: scripts rely on it, docs/operations.md repeats it."""

from enum import IntEnum

from holdfast.config import ConfigError
from holdfast.core.errors import DataDirInUse, HoldfastError
from holdfast.core.values import dataclass


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    """Refused, failed, not found; `doctor`: something needs attention."""
    USAGE = 2
    """The command or a setting is wrong."""
    IN_USE = 3
    """The data directory is used by another process that does not answer."""
    UNREACHABLE = 4
    """The server was lost and did not come back."""
    WAITING = 5
    """The run asks a person, and nobody is at the terminal. It waits; nothing is lost."""
    INTERRUPTED = 130


@dataclass(eq=False)
class CommandError(HoldfastError):
    """A command cannot go on; the text is for the person who gave it."""

    text: str
    exit: Exit = Exit.FAILED

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False)
class Refused(CommandError):
    """What the server said. `code` is its stable name."""

    status: int = 0
    problem: str = ""


@dataclass(eq=False)
class Lost(CommandError):
    """There is no line to the server just now."""

    exit: Exit = Exit.UNREACHABLE


def code_of(error: HoldfastError) -> Exit:
    match error:
        case CommandError(_, exit):
            return exit
        case DataDirInUse():
            return Exit.IN_USE
        case ConfigError():
            return Exit.USAGE
        case _:
            return Exit.FAILED
