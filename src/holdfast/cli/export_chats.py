"""`holdfast export`: conversations as JSON lines, Markdown or HTML. What is exported: `core.export_format`."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import typer

from holdfast.cli.context import CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError
from holdfast.cli.server_connection import ServerConnection, api_path
from holdfast.cli.terminal import count_of


def add(app: typer.Typer, context: CliContext) -> None:
    @app.command("export")
    def export(
        sessions: Annotated[
            list[str] | None, typer.Argument(metavar="SESSION", help="Session IDs. Default: all sessions")
        ] = None,
        form: Annotated[
            Literal["json", "markdown", "html"],
            typer.Option("--format", help="json can be imported again; markdown and html are for reading."),
        ] = "json",
        output: Annotated[
            Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file. Default: stdout")
        ] = None,
        force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Export sessions: all branches and files as JSON lines, or the shown branch as Markdown or HTML.

        \b
        Examples:
          holdfast export --output everything.jsonl
          holdfast export ses_01h… --format markdown | less
          holdfast export ses_01h… --format html -o chat.html
        """
        settings = context.config(data_dir, config)

        async def work(connection: ServerConnection) -> int:
            found = [(sid, False) for sid in sessions or ()] or await _all_sessions(connection)
            with context.terminal.progress() as report, _target(output, force) as out:
                for done, (sid, describes) in enumerate(found):
                    report("Exporting", done, len(found))
                    url = api_path("sessions", sid, "export")
                    params = {"format": form, "project": str(describes).lower()}
                    async with connection.client.stream("GET", url, params=params) as response:
                        async for chunk in response.content.iter_any():
                            out.write(chunk)
                out.flush()
            return len(found)

        count = context.with_server(settings, work)
        if output is not None:
            context.terminal.note(f"Exported {count_of(count, 'session')} to {output}")


async def _all_sessions(connection: ServerConnection) -> list[tuple[str, bool]]:
    """Ids of all sessions, archived ones too, least recently active first, each with whether it is the first of its
    project, which is described with it."""
    found: list[Any] = []
    for archived in ("false", "true"):
        async for page in connection.client.pages(api_path("sessions"), {"archived": archived}):
            found += page
    found.sort(key=lambda item: (item["updated_at"], item["id"]))
    first = {item["project"]: item["id"] for item in reversed(found) if item["project"]}
    return [(item["id"], first.get(item["project"]) == item["id"]) for item in found]


@contextmanager
def _target(output: Path | None, force: bool) -> Iterator[BinaryIO]:
    """Writes to a temporary file that replaces `output` once it is complete."""
    if output is None:
        yield sys.stdout.buffer
        return
    if output.exists() and not force:
        raise CommandError(f"{output} already exists. Choose another name, or use --force.")
    try:
        fd, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
        try:
            with os.fdopen(fd, "wb") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            Path(name).replace(output)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"Cannot write {output}: {error.strerror}.") from None
