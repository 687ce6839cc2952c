"""`holdfast import`: chats from an export of Holdfast or of another application.

The source is read here, by the account that runs the command, and sent to the server in our own export format. It is
read completely before anything is sent, so an invalid source changes nothing.
"""

import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, Literal

import typer

from holdfast.cli.connect import ServerConnection, api_path
from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError
from holdfast.cli.terminal import ReportProgress, Terminal
from holdfast.core.errors import InvalidInputError

if TYPE_CHECKING:
    from holdfast.importers.sources import ConversionReport

_CHUNK: Final = 256 * 1024
_SHOWN: Final = 20  # Skipped items that are printed
NDJSON: Final = "application/x-ndjson"
App = Literal["hermes", "hermes-webui", "chatgpt", "claude", "open-webui", "librechat"]
Sections = list[tuple[int, int]]  # The byte range of each session


def add(app: typer.Typer, context: CliContext) -> None:
    @app.command("import")
    def import_sessions(
        path: Annotated[Path, typer.Argument(help="Export file, ZIP archive or directory; - reads stdin.")],
        source: Annotated[
            App | None, typer.Option("--from", help="Application that the chats come from. Default: detect")
        ] = None,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Import chats from a `holdfast export` file or another application. Importing again adds only what is new.

        An invalid file changes nothing. Importing the chats of another application again adds only what is new.

        \b
        Examples:
          holdfast import everything.jsonl
          ssh other holdfast export | holdfast import -
          holdfast import --from chatgpt chatgpt-export.zip
          holdfast import --from hermes ~/.hermes
        """
        settings = context.config(data_dir, config)
        with context.report_errors(), _readable(path) as file, tempfile.TemporaryFile() as spool:
            report: ConversionReport | None = None
            if source is None and _is_holdfast_export(file):
                content, sections = file, _find_sections(file, str(path))
            else:
                content = spool
                with context.terminal.progress() as bar:
                    sections, report = _convert(Path(file.name) if str(path) == "-" else path, source, spool, bar)

            async def work(connection: ServerConnection) -> list[Any]:
                imported: list[Any] = []
                with context.terminal.progress() as bar:
                    for done, section in enumerate(sections):
                        bar("Importing", done, len(sections))
                        imported += await _send(connection, content, section)
                return imported

            imported = context.with_server(settings, work, creates=True) if sections else []
        if report is not None:
            _print_summary(context.terminal, report, imported, as_json=as_json)
        elif as_json:
            context.terminal.json(imported)
        else:
            for each in imported:
                title = each["title"] or "(untitled)"
                context.terminal.line(f"{each['session_id']}  {title} ({each['messages']} messages)")


@contextmanager
def _readable(path: Path) -> "Iterator[Any]":
    """Yields a file that can be read more than once and has a name; the directory itself is not opened."""
    try:
        if path.is_dir():
            with tempfile.TemporaryFile() as nothing:
                yield nothing
        elif str(path) != "-":
            with path.open("rb") as content:
                yield content
        else:
            with tempfile.NamedTemporaryFile() as content:
                while chunk := sys.stdin.buffer.read(_CHUNK):
                    content.write(chunk)
                content.flush()
                yield content
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}.") from None


def _is_holdfast_export(file: BinaryIO) -> bool:
    from holdfast.importers.sources import is_holdfast_export  # imports pydantic, which `--help` does not need

    file.seek(0)
    return is_holdfast_export(file)


def _find_sections(content: BinaryIO, name: str) -> Sections:
    """Raises CommandError, before anything is sent, if the file is invalid."""
    from holdfast.importers.section_spool import SectionIndex

    index = SectionIndex()
    content.seek(0)
    try:
        for _ in index.read(content):
            pass
    except InvalidInputError as error:
        raise CommandError(f"{name}, {error}. Nothing was imported.") from None
    return index.sections


def _convert(
    path: Path, source: App | None, spool: BinaryIO, bar: ReportProgress
) -> "tuple[Sections, ConversionReport]":
    from holdfast.importers.section_spool import SectionSpool
    from holdfast.importers.sources import convert

    sections = SectionSpool(spool)
    try:
        report = convert(path, source, sections.add, lambda done, total: bar("Reading", done, total))
    except InvalidInputError as error:
        raise CommandError(f"{error}. Nothing was imported.") from None
    spool.flush()
    return sections.sections, report


async def _send(connection: ServerConnection, content: BinaryIO, section: tuple[int, int]) -> list[Any]:
    from holdfast.importers.section_spool import read_section

    async def body() -> AsyncIterator[bytes]:
        for chunk in read_section(content, section):
            yield chunk

    async with connection.client.stream(
        "POST", api_path("import"), data=body(), headers={"Content-Type": NDJSON}
    ) as response:
        items: list[Any] = (await response.json())["items"]
        return items


def _print_summary(terminal: Terminal, report: "ConversionReport", imported: list[Any], *, as_json: bool) -> None:
    for each in imported:
        for reason in each["skipped"]:
            report.skip(each["title"] or each["session_id"], reason)
    new = [each for each in imported if each["is_new"]]
    grown = [each for each in imported if not each["is_new"] and each["messages"]]
    messages = sum(each["messages"] for each in imported)
    unchanged = len(imported) - len(new) - len(grown)
    if as_json:
        terminal.json(
            {
                "source": report.app,
                "imported": len(new),
                "updated": len(grown),
                "unchanged": unchanged,
                "messages": messages,
                "sessions": [each["session_id"] for each in [*new, *grown]],
                "skipped": [{"item": item, "reason": reason} for item, reason in report.skipped],
                "skipped_count": report.skipped_count,
            }
        )
        return
    counts = f"{len(new)} new, {len(grown)} updated, {unchanged} unchanged"
    terminal.line(f"Imported {messages} messages from {report.app}. Chats: {counts}.")
    if report.skipped_count:
        terminal.note(f"Skipped {report.skipped_count} items:", "yellow")
        for item, reason in report.skipped[:_SHOWN]:
            terminal.note(f"  {item}: {reason}")
        if report.skipped_count > _SHOWN:
            terminal.note("  … Use --json to list them.")
