"""`holdfast backup`: copies the data directory, also while a server is running."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.connect import ServerConnection, api_path
from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError, ConnectionLostError
from holdfast.core.sse import SseParser

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def add(app: typer.Typer, context: CliContext) -> None:
    @app.command()
    def backup(
        destination: Annotated[Path, typer.Argument(help="A new or empty directory.")],
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
            with context.terminal.progress() as bar:
                return await _make_backup(connection, target, ProgressBars(bar))

        done = context.with_server(context.config(data_dir, config), work)
        if as_json:
            context.terminal.json(done)
            return
        context.terminal.line(
            f"Backed up {done['sessions']} sessions, {done['messages']} messages, {done['runs']} runs and "
            f"{done['files']} files ({done['bytes'] / 1e6:.1f} MB) to {target}. The copy was verified."
        )


class ProgressBars:
    """One progress bar for each kind of item."""

    def __init__(self, bar: "Progress") -> None:
        self._bar = bar
        self._tasks: dict[str, TaskID] = {}

    def update(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=total)
        self._bar.update(self._tasks[what], completed=done, total=total)


async def _make_backup(connection: ServerConnection, target: Path, bars: ProgressBars) -> Any:
    """Follows the progress that the server streams. If the stream breaks, the server removes the unfinished copy."""
    parser = SseParser()
    async with connection.client.stream("POST", api_path("backup"), body={"path": str(target)}) as response:
        async for chunk in response.content.iter_any():
            for event in parser.feed(chunk):
                data = json.loads(event.data)
                if event.event == "progress":
                    bars.update(data["what"], data["done"], data["total"])
                elif event.event == "done":
                    return data
                elif event.event == "failed":
                    raise CommandError(f"No backup was made. {data['detail']}")
    raise ConnectionLostError("The connection was lost before the backup was complete. No backup was made.")
