"""Exit codes and the errors that determine them. Scripts rely on this table; docs/reference/cli.md repeats it. How a
run ended, as a code: `cli.conversation`; Ctrl-C and a broken pipe: `cli.context`."""

from enum import IntEnum

from holdfast.core.errors import ConfigError, DataDirInUseError, HoldfastError


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1  # Refused, failed or not found; for `doctor`: a check failed
    USAGE = 2  # The command line or a setting is wrong
    IN_USE = 3  # Another process uses the data directory and does not answer
    UNREACHABLE = 4  # The connection to the server was lost and did not come back
    WAITING = 5  # The run needs approval, and there is no terminal to ask at. It waits; nothing is lost.
    INTERRUPTED = 130


class CommandError(HoldfastError):
    """A command cannot continue. `text` is shown to the user."""

    template = "{text}"
    text: str
    exit: ExitCode = ExitCode.FAILED


class ServerRefusedError(CommandError):
    """The server answered with an error. `problem` is its stable code."""

    status: int = 0
    problem: str = ""


class ConnectionLostError(CommandError):
    exit: ExitCode = ExitCode.UNREACHABLE


def exit_code_of(error: HoldfastError) -> ExitCode:
    match error:
        case CommandError(_, exit):
            return exit
        case DataDirInUseError():
            return ExitCode.IN_USE
        case ConfigError():
            return ExitCode.USAGE
        case _:
            return ExitCode.FAILED
