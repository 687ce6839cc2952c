"""`holdfast migrate-store`: copies a data directory to storage that several nodes share. How: `app.migrate_store`."""

from typing import Annotated

import anyio
import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir


def add(app: typer.Typer, context: CliContext) -> None:
    @app.command(
        "migrate-store", epilog="Example: holdfast migrate-store --to postgresql://holdfast@db.example/holdfast"
    )
    def migrate_store(
        to: Annotated[
            str | None, typer.Option(help="PostgreSQL URL. Default: HOLDFAST_STORE_URL", metavar="URL")
        ] = None,
        journal: Annotated[str | None, typer.Option(help="Redis URL for the journal.", metavar="URL")] = None,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Copy the data directory to PostgreSQL and verify every row. Stop the server first.

        An interrupted migration resumes where it stopped. The data directory is not changed.
        """
        from holdfast.app.migrate_store import migrate

        settings = context.config(data_dir, config, store_url=to, journal_url=journal)
        with context.report_errors(), context.terminal.progress() as report:
            done = anyio.run(migrate, settings, report)
        if as_json:
            context.terminal.json(dict(done))
            return
        counts = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in done.items() if number)
        context.terminal.line(f"Copied and verified: {counts or 'nothing; the data directory is empty'}.")
        context.terminal.note(f"{settings.data_dir} was not changed. Set HOLDFAST_STORE_URL to use the new store.")
