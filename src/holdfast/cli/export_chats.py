"""`holdfast export`: conversations as JSON lines or Markdown."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import typer

from holdfast.cli.connect import ServerConnection, api_path
from holdfast.cli.context import CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError


def add(app: typer.Typer, context: CliContext) -> None:
    @app.command("export")
    def export(
        sessions: Annotated[
            list[str] | None, typer.Argument(metavar="[SESSION]...", help="Session IDs. Default: all sessions")
        ] = None,
        form: Annotated[
            Literal["json", "markdown"],
            typer.Option("--format", help="json can be imported again; markdown is for reading."),
        ] = "json",
        output: Annotated[Path | None, typer.Option("--output", "-o", help="Output file. Default: stdout")] = None,
        force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Export sessions: all branches and files as JSON lines, or the shown branch as Markdown.

        \b
        Examples:
          holdfast export --output everything.jsonl
          holdfast export ses_01h… --format markdown | less
        """
        settings = context.config(data_dir, config)

        async def work(connection: ServerConnection) -> int:
            ids = sessions or await _all_sessions(connection)
            with context.terminal.progress() as report, _target(output, force) as out:
                for done, sid in enumerate(ids):
                    report("Exporting", done, len(ids))
                    url, params = api_path("sessions", sid, "export"), {"format": form}
                    async with connection.client.stream("GET", url, params=params) as response:
                        async for chunk in response.content.iter_any():
                            out.write(chunk)
                out.flush()
            return len(ids)

        count = context.with_server(settings, work)
        if output is not None:
            context.terminal.note(f"Exported {count} {'session' if count == 1 else 'sessions'} to {output}")


async def _all_sessions(connection: ServerConnection) -> list[str]:
    """Ids of all sessions, archived ones too, least recently active first."""
    found: list[Any] = []
    for archived in ("false", "true"):
        async for page in connection.client.pages(api_path("sessions"), {"archived": archived}):
            found += page
    return [item["id"] for item in sorted(found, key=lambda item: (item["updated_at"], item["id"]))]


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
