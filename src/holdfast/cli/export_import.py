"""`holdfast export` and `holdfast import`: conversations as JSON lines or Markdown."""

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal

import typer

from holdfast.cli.connect import ServerConnection, api_path
from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError
from holdfast.core.errors import InvalidInputError
from holdfast.core.export_format import ExportedSession
from holdfast.engine.export_lines import ImportReader

_CHUNK: Final = 256 * 1024
NDJSON: Final = "application/x-ndjson"


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

    @app.command("import")
    def import_sessions(
        file: Annotated[Path, typer.Argument(help="File written by `holdfast export`, or - for stdin.")],
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Import sessions from a `holdfast export` file as new sessions. An invalid file changes nothing.

        \b
        Examples:
          holdfast import everything.jsonl
          ssh other holdfast export | holdfast import -
        """
        settings = context.config(data_dir, config)
        with context.report_errors(), _source(file) as content:
            sections = _find_sections(content, str(file))

            async def work(connection: ServerConnection) -> list[Any]:
                imported: list[Any] = []
                with context.terminal.progress() as report:
                    for done, (start, end) in enumerate(sections):
                        report("Importing", done, len(sections))
                        imported += await _send(connection, content, start, end)
                return imported

            imported = context.with_server(settings, work, creates=True)
        if as_json:
            context.terminal.json(imported)
            return
        for each in imported:
            context.terminal.line(
                f"{each['session_id']}  {each['title'] or '(untitled)'} ({each['messages']} messages)"
            )


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


@contextmanager
def _source(file: Path) -> Iterator[BinaryIO]:
    """Yields a seekable file: it is read once to validate it and once to send it."""
    try:
        if str(file) != "-":
            with file.open("rb") as content:
                yield content
            return
        with tempfile.TemporaryFile() as content:
            while chunk := sys.stdin.buffer.read(_CHUNK):
                content.write(chunk)
            yield content
    except OSError as error:
        raise CommandError(f"Cannot read {file}: {error.strerror}.") from None


def _find_sections(content: BinaryIO, name: str) -> list[tuple[int, int]]:
    """The byte range of each session. Raises CommandError, before anything is sent, if the file is invalid."""
    reader, start = ImportReader(), 0
    found: list[tuple[int, int]] = []
    content.seek(0)
    try:
        at = 0
        for line in content:
            at += len(line)
            if isinstance(reader.read(line.rstrip(b"\r\n")), ExportedSession):
                found.append((start, at))
                start = at
        reader.finish()
    except InvalidInputError as error:
        raise CommandError(f"{name}, {error}. Nothing was imported.") from None
    if not found:
        raise CommandError(f"{name} is empty. Nothing was imported.")
    return found


async def _send(connection: ServerConnection, content: BinaryIO, start: int, end: int) -> list[Any]:
    async def body() -> AsyncIterator[bytes]:
        content.seek(start)
        remaining = end - start
        while remaining > 0 and (chunk := content.read(min(remaining, _CHUNK))):
            remaining -= len(chunk)
            yield chunk

    async with connection.client.stream(
        "POST", api_path("import"), data=body(), headers={"Content-Type": NDJSON}
    ) as response:
        items: list[Any] = (await response.json())["items"]
        return items
