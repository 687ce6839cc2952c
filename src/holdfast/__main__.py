"""The `holdfast` command."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.system import hide_process_memory, unsupported_reason

if TYPE_CHECKING:
    from holdfast.cli.context import TestAgents


def with_default_command(arguments: Sequence[str]) -> list[str]:
    """Without a command, `holdfast` serves and opens the browser; flags are those of `serve`."""
    is_command = bool(arguments) and (not arguments[0].startswith("-") or arguments[0] in ("-h", "--help", "--version"))
    return [*arguments] if is_command else ["serve", "--open", *arguments]


def main(agents: "TestAgents | None" = None) -> None:
    if reason := unsupported_reason(sys.platform):
        raise SystemExit(f"holdfast: {reason}")
    hide_process_memory()  # before anything else, so that nothing sees the keys in the environment meanwhile
    from holdfast.cli.app import build
    from holdfast.cli.context import CliContext

    arguments = with_default_command(sys.argv[1:])
    build(CliContext(agents), command=arguments[0])(arguments, prog_name="holdfast")


if __name__ == "__main__":
    main()
