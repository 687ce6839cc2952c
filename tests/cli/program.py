"""The real `holdfast`, with the scripted agent of `tests.http.scripts` where no model is connected:
`python -m tests.cli.program …`, or forked by a nursery. `--at-terminal` first makes stdin the controlling terminal of a
session of its own, as a login does."""

import fcntl
import os
import signal
import sys
import termios
import warnings
from collections.abc import Mapping, Sequence

from holdfast import __main__ as command
from holdfast import wiring  # noqa: F401  a nursery has it ready; `holdfast` itself imports it when it is needed
from holdfast.agents.scripted import ScriptedAgent
from holdfast.config import Config
from holdfast.faces.cli import (  # noqa: F401  and so with these
    access,
    backup,
    bench,
    chat,
    client,
    doctor,
    memory,
    migrating,
    models,
    runs,
    sessions,
    transfer,
)
from holdfast.ports import Agent
from tests.http import scripts


def agents(_: Config) -> Mapping[str, Agent]:
    return {"chat": ScriptedAgent(scripts.of_turn)}


def main(arguments: Sequence[str]) -> int:
    """In a fork: as if it had just been started at a shell that knows nothing of Holdfast."""
    warnings.simplefilter("error")
    for name in [name for name in os.environ if name.startswith("HOLDFAST_") or name in ("COLUMNS", "LINES")]:
        del os.environ[name]
    os.environ["TERM"] = "xterm"
    rest = list(arguments)
    if rest[0] == "--at-terminal":
        del rest[0]
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may have it ignored
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
