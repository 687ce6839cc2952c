"""The real `holdfast` with the scripted agent of `tests.http.scripts`: `python -m tests.cli.program …`, or forked by a
forker. With `--at-terminal` as the first argument, stdin becomes the controlling terminal, as after a login."""

import fcntl
import os
import signal
import sys
import termios
import warnings
from collections.abc import Mapping, Sequence

from holdfast import __main__ as command
from holdfast import app  # noqa: F401  imported once by the forker; `holdfast` imports it on demand
from holdfast.agents.scripted_agent import ScriptedAgent
from holdfast.config import Config
from holdfast.ports.agent import Agent
from tests.http import scripts


def agents(_: Config) -> Mapping[str, Agent]:
    return {"chat": ScriptedAgent(scripts.of_turn)}


def main(arguments: Sequence[str]) -> int:
    """Runs a command as if it were started by a shell without any HOLDFAST_* variable."""
    warnings.simplefilter("error")
    for name in [name for name in os.environ if name.startswith("HOLDFAST_") or name in ("COLUMNS", "LINES")]:
        del os.environ[name]
    os.environ["TERM"] = "xterm"
    rest = list(arguments)
    if rest[0] == "--at-terminal":
        del rest[0]
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the test runner may ignore it
    sys.argv = ["holdfast", *rest]
    try:
        command.main(agents)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    command.main(agents)
