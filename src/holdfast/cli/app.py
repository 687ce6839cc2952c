"""Registers all commands. A group of commands is a module with an `add` function."""

from importlib import import_module
from typing import Annotated, Final

import typer

from holdfast import __version__
from holdfast.cli.context import CliContext

_USE: Final = (
    "chat",
    "sessions",
    "projects",
    "prompts",
    "personas",
    "runs",
    "memory",
    "models",
    "agents",
    "usage",
    "export_chats",
    "import_chats",
    "backup",
    "migrate_store",
)
_ADMINISTRATION: Final = ("doctor", "config", "credentials", "bench")
"""The modules with commands, in the order in which `--help` lists these."""


def build(context: CliContext, command: str = "") -> typer.Typer:
    """`command` is the first argument: the server starts without importing the other commands."""
    app = typer.Typer(
        name="holdfast",
        help="AI chat and agents that never lose a token. Without a command: start the server and open the browser.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def print_version(requested: bool) -> None:
        if requested:
            context.terminal.raw(f"holdfast {__version__}\n")
            raise typer.Exit

    @app.callback()
    def root(
        _: Annotated[
            bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version.")
        ] = False,
    ) -> None:
        pass

    for group in ("serve",) if command == "serve" else ("serve", *_USE, *_ADMINISTRATION):
        import_module(f"holdfast.cli.{group}").add(app, context)
    return app
