"""`holdfast backup`: a copy of everything, also beside a running server."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, TaskID

from holdfast.faces.cli.client import path
from holdfast.faces.cli.desk import AsJson, ConfigFile, DataDir, Desk
from holdfast.faces.cli.exits import CommandError, Lost
from holdfast.faces.cli.reach import Line
from holdfast.faces.cli.sse import Frame, Parser


def add(app: typer.Typer, desk: Desk) -> None:
    @app.command()
    def backup(
        destination: Annotated[Path, typer.Argument(help="A directory that is not there yet, or empty.")],
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Copy everything to a new data directory, while the server goes on; the copy is checked.

        \b
        Example:
          holdfast backup /mnt/backups/holdfast-2026-01-31
        To use it: holdfast serve --data-dir /mnt/backups/holdfast-2026-01-31
        """
        target = Path(destination).expanduser().absolute()

        async def work(line: Line) -> Any:
            with desk.screen.progress() as bar:
                return await _watch(line, target, Shown(bar))

        done = desk.at_server(desk.config(data_dir, config), work)
        if as_json:
            desk.screen.json(done)
            return
        desk.screen.line(
            f"{target}: {done['sessions']} sessions, {done['messages']} messages, {done['runs']} runs, {done['files']} "
            f"files, {done['bytes'] / 1e6:.1f} MB. Checked: it opens, is whole, and has as many rows as what it is of."
        )


class Shown:
    """A bar for each thing that is copied."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._tasks: dict[str, TaskID] = {}

    def update(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=total)
        self._bar.update(self._tasks[what], completed=done, total=total)


async def _watch(line: Line, target: Path, shown: Shown) -> Any:
    """The server says how far it is. If we leave, it stops and removes what it has begun."""
    parser = Parser()
    async with line.client.stream("POST", path("backup"), body={"path": str(target)}) as answer:
        async for piece in answer.pieces():
            for frame in parser.feed(piece):
                done = _take(frame, shown)
                if done is not None:
                    return done
    raise Lost("The server let go before the backup was done. There is none.")


def _take(frame: Frame, shown: Shown) -> Any:
    data = json.loads(frame.data)
    match frame.event:
        case "progress":
            shown.update(data["what"], data["done"], data["total"])
        case "done":
            return data
        case "failed":
            raise CommandError(f"No backup was made. {data['detail']}")
        case _:
            pass
    return None
