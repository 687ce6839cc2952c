"""The `holdfast` command."""

import sys
from typing import TYPE_CHECKING

from holdfast.system import hide_process_memory

if TYPE_CHECKING:
    from holdfast.cli.context import TestAgents


def main(agents: "TestAgents | None" = None) -> None:
    hide_process_memory()  # before anything else, so that nothing sees the keys in the environment meanwhile
    from holdfast.cli.app import build
    from holdfast.cli.context import CliContext

    build(CliContext(agents), command="".join(sys.argv[1:2]))(prog_name="holdfast")


if __name__ == "__main__":
    main()
