"""All commands, put together. A new group is a module with `add` and a line here."""

from typing import Annotated

import typer

from holdfast import __version__
from holdfast.faces.cli import (
    access,
    backup,
    bench,
    chat,
    doctor,
    memory,
    migrating,
    models,
    runs,
    serving,
    sessions,
    transfer,
)
from holdfast.faces.cli.desk import Desk

GROUPS = (serving, chat, sessions, runs, transfer, backup, migrating, doctor, access, models, memory, bench)


def build(desk: Desk) -> typer.Typer:
    app = typer.Typer(
        name="holdfast",
        help="AI chat and agents that never lose a token.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def version(wanted: bool) -> None:
        if wanted:
            desk.screen.raw(f"holdfast {__version__}\n")
            raise typer.Exit

    @app.callback()
    def root(
        _: Annotated[
            bool, typer.Option("--version", callback=version, is_eager=True, help="Say which version this is.")
        ] = False,
    ) -> None:
        pass

    for group in GROUPS:
        group.add(app, desk)
    return app
