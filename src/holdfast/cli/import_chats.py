"""`holdfast import`: chats from an export of Holdfast or of another application.

The source is read here, by the account that runs the command, and sent to the server in our own export format. It is
read completely before anything is sent, so an invalid source changes nothing.
"""

import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, Literal

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError
from holdfast.cli.server_connection import ServerConnection, api_path
from holdfast.cli.terminal import ReportProgress, Terminal, count_of
from holdfast.core.errors import InvalidInputError
from holdfast.core.file_errors import storage_errors

if TYPE_CHECKING:
    from holdfast.importers.sources import ConversionReport

_CHUNK: Final = 256 * 1024
_SHOWN: Final = 20  # Skipped items that are printed
_UNUSABLE: Final = "The import cannot be stored in a temporary file"
NDJSON: Final = "application/x-ndjson"
App = Literal["hermes", "hermes-webui", "chatgpt", "claude", "open-webui", "librechat"]
Sections = list[tuple[int, int]]  # The byte range of each session


def add(app: typer.Typer, context: CliContext) -> None:
    @app.command("import")
    def import_sessions(
        path: Annotated[
            Path, typer.Argument(metavar="PATH", help="Export file, ZIP archive or directory; - reads stdin.")
        ],
        source: Annotated[
            App | None, typer.Option("--from", help="Application that the chats come from. Default: it is detected.")
        ] = None,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Import chats from a `holdfast export` file or another application.

        Importing again adds only what is new. If the file is invalid, nothing is imported.

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
                        imported += await _send(connection, content, section, converted=report is not None)
                return imported

            imported = context.with_server(settings, work, creates=True) if sections else []
        if report is not None:
            _print_summary(context.terminal, report, imported, as_json=as_json)
        elif as_json:
            context.terminal.json(imported)
        else:
            new, grown = _changed(imported)
            for each in [*new, *grown]:
                title = each["title"] or "(untitled)"
                context.terminal.line(f"{each['session_id']}  {title} ({count_of(each['messages'], 'message')})")
            context.terminal.note(_counts(imported, ""))
            skipped = [(each["title"] or each["session_id"], reason) for each in imported for reason in each["skipped"]]
            _print_skipped(context.terminal, skipped, len(skipped))


@contextmanager
def _readable(path: Path) -> "Iterator[Any]":
    """Yields a file that can be read more than once and has a name; the directory itself is not opened."""
    with ExitStack() as opened:
        if path.is_dir():
            yield opened.enter_context(tempfile.TemporaryFile())
        elif str(path) != "-":
            with _reading(path):
                content = opened.enter_context(path.open("rb"))
            yield content
        else:
            with storage_errors("Standard input cannot be stored in a temporary file"):
                kept = opened.enter_context(tempfile.NamedTemporaryFile())
                while chunk := sys.stdin.buffer.read(_CHUNK):
                    kept.write(chunk)
                kept.flush()
            yield kept


@contextmanager
def _reading(path: Path | str) -> Iterator[None]:
    try:
        yield
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
        with _reading(name):
            for _ in index.read(content):
                pass
    except InvalidInputError as error:
        raise CommandError(f"{name}, {error}. Nothing was imported.") from None
    return index.sections


def _convert(
    path: Path, source: App | None, spool: BinaryIO, bar: ReportProgress
) -> "tuple[Sections, ConversionReport]":
    from holdfast.importers.section_spool import SectionSpool
    from holdfast.importers.sources import UnrecognizedFileError, WrongSourceError, convert

    sections = SectionSpool(spool)
    try:
        report = convert(path, source, sections.add, lambda done, total: bar("Reading", done, total))
    except UnrecognizedFileError as error:
        unknown = f"Couldn't recognize {error.field}. If it is a chat export, name its source with --from."
        raise CommandError(f"{unknown} Nothing was imported.") from None
    except WrongSourceError as error:
        advice = "Import it without --from." if error.app is None else f"Import it with --from {error.app}."
        raise CommandError(f"{error.field} looks like {error.problem}. {advice} Nothing was imported.") from None
    except InvalidInputError as error:
        raise CommandError(f"{error}. Nothing was imported.") from None
    with storage_errors(_UNUSABLE):
        spool.flush()
    return sections.sections, report


async def _send(
    connection: ServerConnection, content: BinaryIO, section: tuple[int, int], *, converted: bool
) -> list[Any]:
    from holdfast.cli.http_client import IMPORT_TIMEOUT
    from holdfast.importers.section_spool import read_section

    async def body() -> AsyncIterator[bytes]:
        for chunk in read_section(content, section):
            yield chunk

    url, params, headers = api_path("import"), {"converted": str(converted).lower()}, {"Content-Type": NDJSON}
    async with connection.client.stream(
        "POST", url, params=params, data=body(), headers=headers, limits=IMPORT_TIMEOUT
    ) as response:
        items: list[Any] = (await response.json())["items"]
        return items


def _print_summary(terminal: Terminal, report: "ConversionReport", imported: list[Any], *, as_json: bool) -> None:
    for each in imported:
        for reason in each["skipped"]:
            report.skip(each["title"] or each["session_id"], reason)
    new, grown = _changed(imported)
    if as_json:
        terminal.json(
            {
                "source": report.app,
                "imported": len(new),
                "updated": len(grown),
                "unchanged": len(imported) - len(new) - len(grown),
                "messages": sum(each["messages"] for each in imported),
                "sessions": [each["session_id"] for each in [*new, *grown]],
                "skipped": [{"item": item, "reason": reason} for item, reason in report.skipped],
                "skipped_count": report.skipped_count,
            }
        )
        return
    terminal.line(_counts(imported, f" from {report.app}"))
    _print_skipped(terminal, report.skipped, report.skipped_count)


def _changed(imported: list[Any]) -> tuple[list[Any], list[Any]]:
    """The sessions that are new, and those that got more messages."""
    new = [each for each in imported if each["is_new"]]
    return new, [each for each in imported if not each["is_new"] and each["messages"]]


def _counts(imported: list[Any], source: str) -> str:
    new, grown = _changed(imported)
    messages, unchanged = sum(each["messages"] for each in imported), len(imported) - len(new) - len(grown)
    counts = f"{len(new)} new, {len(grown)} updated, {unchanged} unchanged"
    return f"Imported {count_of(messages, 'message')}{source}. Chats: {counts}."


def _print_skipped(terminal: Terminal, skipped: Sequence[tuple[str, str]], count: int) -> None:
    if not count:
        return
    terminal.note(f"Skipped {count_of(count, 'item')}:", "yellow")
    for item, reason in skipped[:_SHOWN]:
        terminal.note(f"  {item}: {reason}")
    if count > _SHOWN:
        terminal.note("  … Use --json to list them.")
