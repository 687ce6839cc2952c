"""Registers all commands. A group of commands is a module with an `add` function."""

from collections.abc import Iterator
from typing import Annotated, Protocol

import typer

from holdfast import __version__
from holdfast.cli import serve
from holdfast.cli.context import CliContext


class CommandGroup(Protocol):
    def add(self, app: typer.Typer, context: CliContext) -> None: ...


def _groups(command: str) -> Iterator[CommandGroup]:
    yield serve
    if command == "serve":
        return  # so that the server starts without importing the other commands
    from holdfast.cli import (
        backup,
        bench,
        chat,
        config,
        credentials,
        doctor,
        export_import,
        memory,
        migrate_store,
        models,
        runs,
        sessions,
    )

    yield from (chat, sessions, runs, memory, models, export_import, backup, migrate_store)
    yield from (doctor, config, credentials, bench)


def build(context: CliContext, command: str = "") -> typer.Typer:
    """`command` is the first argument; only the modules it may need are imported."""
    app = typer.Typer(
        name="holdfast",
        help="AI chat and agents that never lose a token.",
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

    for group in _groups(command):
        group.add(app, context)
    return app
