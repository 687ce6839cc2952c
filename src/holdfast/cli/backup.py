"""`holdfast backup`: copies the data directory, also while a server is running. What is copied, in which order:
`storage.sqlite.backup`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError, ConnectionLostError
from holdfast.cli.run_follower import read_events
from holdfast.cli.server_connection import ServerConnection, api_path
from holdfast.cli.terminal import ReportProgress, count_of


def add(app: typer.Typer, context: CliContext) -> None:
    @app.command()
    def backup(
        destination: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty directory.")],
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Back up the data directory and verify the copy. The server keeps running.

        \b
        Example:
          holdfast backup /mnt/backups/holdfast-2026-01-31
        To restore it, use it as the data directory:
          holdfast serve --data-dir /mnt/backups/holdfast-2026-01-31
        """
        target = Path(destination).expanduser().absolute()

        async def work(connection: ServerConnection) -> Any:
            with context.terminal.progress() as report:
                return await _make_backup(connection, target, report)

        done = context.with_server(context.config(data_dir, config), work)
        if as_json:
            context.terminal.json(done)
            return
        counts = ", ".join(count_of(done[f"{noun}s"], noun) for noun in ("session", "message", "run", "file"))
        size = f"{done['bytes'] / 1e6:.1f} MB"
        context.terminal.line(f"Backed up {counts} ({size}) to {target}. The copy was verified.")


async def _make_backup(connection: ServerConnection, target: Path, report: ReportProgress) -> Any:
    """Follows the progress that the server streams. If the stream breaks, the server removes the unfinished copy."""
    async with connection.client.stream("POST", api_path("backup"), body={"path": str(target)}) as response:
        async for event in read_events(response):
            if event.type == "progress":
                report(event.data["what"], event.data["done"], event.data["total"])
            elif event.type == "done":
                return event.data
            elif event.type == "failed":
                raise CommandError(f"No backup was made. {event.data['detail'].removeprefix('path: ')}")
    raise ConnectionLostError("The connection was lost before the backup was complete. No backup was made.")
