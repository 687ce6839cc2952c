"""All commands, put together. A new group is a module with `add` and a line here."""

from collections.abc import Iterator
from typing import Annotated, Protocol

import typer

from holdfast import __version__
from holdfast.faces.cli import serving
from holdfast.faces.cli.desk import Desk


class Group(Protocol):
    def add(self, app: typer.Typer, desk: Desk) -> None: ...


def _groups(asked: str) -> Iterator[Group]:
    yield serving
    if asked == "serve":
        return  # a server is to answer soon, and need not wait for what the other commands import
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
        sessions,
        transfer,
    )

    yield from (chat, sessions, runs, transfer, backup, migrating, doctor, access, models, memory, bench)


def build(desk: Desk, asked: str = "") -> typer.Typer:
    """`asked`: the command, as far as it is known."""
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

    for group in _groups(asked):
        group.add(app, desk)
    return app
