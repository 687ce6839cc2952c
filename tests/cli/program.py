"""The real `holdfast`, with the scripted agent of `tests.http.scripts` where no model is connected:
`python -m tests.cli.program …`. `--at-terminal` first makes stdin its controlling terminal, as a login does."""

import fcntl
import signal
import sys
import termios
from collections.abc import Mapping

from holdfast.__main__ import main
from holdfast.agents.scripted import ScriptedAgent
from holdfast.config import Config
from holdfast.ports import Agent
from tests.http import scripts


def agents(_: Config) -> Mapping[str, Agent]:
    return {"chat": ScriptedAgent(scripts.of_turn)}


if __name__ == "__main__":
    if sys.argv[1] == "--at-terminal":
        del sys.argv[1]
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may have it ignored
    main(agents)
