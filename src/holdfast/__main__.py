"""The `holdfast` command."""

import sys

from holdfast.cli.app import build
from holdfast.cli.context import CliContext, TestAgents


def main(agents: TestAgents | None = None) -> None:
    build(CliContext(agents), command="".join(sys.argv[1:2]))(prog_name="holdfast")


if __name__ == "__main__":
    main()
