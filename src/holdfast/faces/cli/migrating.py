"""`holdfast migrate-store`: from a data directory to storage that several nodes share."""

from functools import partial
from typing import Annotated

import anyio
import typer

from holdfast.faces.cli.backup import Shown
from holdfast.faces.cli.desk import AsJson, ConfigFile, DataDir, Desk


def add(app: typer.Typer, desk: Desk) -> None:
    @app.command("migrate-store")
    def migrate_store(
        to: Annotated[str | None, typer.Option(help="PostgreSQL; else HOLDFAST_STORE_URL.", metavar="URL")] = None,
        journal: Annotated[str | None, typer.Option(help="Redis, if the journal goes there.", metavar="URL")] = None,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Copy everything from the data directory to PostgreSQL, and check it row by row. Stop the server first.

        Broken off, it goes on where it was. The directory is left as it is.

        \b
        Example:
          holdfast migrate-store --to postgresql://holdfast@db.example/holdfast
        """
        settings = desk.config(data_dir, config, store_url=to, journal_url=journal)
        with desk.reporting(), desk.screen.progress() as bar:
            done = anyio.run(partial(desk.move, settings, Shown(bar).update))
        if as_json:
            desk.screen.json(dict(done))
            return
        counts = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in done.items() if number)
        desk.screen.line(f"Moved and checked: {counts or 'nothing, for there was nothing'}.")
        desk.screen.note(f"{settings.data_dir} is as it was. Start with HOLDFAST_STORE_URL set from now on.")
