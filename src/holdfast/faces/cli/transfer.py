"""`holdfast export` and `holdfast import`."""

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer

from holdfast.core.errors import Invalid
from holdfast.core.portable_reader import Finished, Reader
from holdfast.faces.cli.client import path
from holdfast.faces.cli.desk import AsJson, ConfigFile, DataDir, Desk
from holdfast.faces.cli.exits import CommandError, Exit
from holdfast.faces.cli.paging import pages
from holdfast.faces.cli.reach import Line

_CHUNK: Final = 256 * 1024
LINES: Final = "application/x-ndjson"


class Form(StrEnum):
    json = "json"
    markdown = "markdown"


def add(app: typer.Typer, desk: Desk) -> None:
    @app.command("export")
    def export(
        sessions: Annotated[list[str] | None, typer.Argument(metavar="[SESSION]...", help="Ids; none: all.")] = None,
        form: Annotated[Form, typer.Option("--format", help="json can be imported, markdown can be read.")] = Form.json,
        output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; stdout without it.")] = None,
        force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Write conversations out: every branch, with their files, as lines of JSON; or the shown branch as Markdown.

        \b
        Examples:
          holdfast export --output everything.jsonl
          holdfast export ses_01h… --format markdown | less
        """
        settings = desk.config(data_dir, config)

        async def work(line: Line) -> int:
            wanted = sessions or await _all(line)
            with desk.screen.progress() as bar, _target(output, force) as out:
                task = bar.add_task("Exporting", total=len(wanted))
                for sid in wanted:
                    where = path("sessions", sid, "export")
                    async with line.client.stream("GET", where, params={"format": form.value}) as answer:
                        async for piece in answer.pieces():
                            out.write(piece)
                    bar.advance(task)
                out.flush()
            return len(wanted)

        count = desk.at_server(settings, work)
        if output is not None:
            desk.screen.note(f"{count} {'session' if count == 1 else 'sessions'} in {output}")

    @app.command("import")
    def take_in(
        file: Annotated[Path, typer.Argument(help="What `export` wrote; - is stdin.")],
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Take in conversations that `holdfast export` wrote, as new ones. A file with a fault changes nothing.

        \b
        Examples:
          holdfast import everything.jsonl
          ssh other holdfast export | holdfast import -
        """
        settings = desk.config(data_dir, config)
        with desk.reporting(), _source(file) as content:
            sections = _sections(content, str(file))

            async def work(line: Line) -> list[Any]:
                taken: list[Any] = []
                with desk.screen.progress() as bar:
                    task = bar.add_task("Importing", total=len(sections))
                    for start, end in sections:
                        taken += await _send(line, content, start, end)
                        bar.advance(task)
                return taken

            taken = desk.at_server(settings, work, makes=True)
        if as_json:
            desk.screen.json(taken)
            return
        for each in taken:
            desk.screen.line(f"{each['session_id']}  {each['title'] or '(no title)'} ({each['messages']} messages)")


async def _all(line: Line) -> list[str]:
    """Oldest activity first, archived ones too."""
    found: list[Any] = []
    for archived in ("false", "true"):
        found += [item async for item in pages(line.client, path("sessions"), {"archived": archived})]
    return [item["id"] for item in sorted(found, key=lambda item: (item["updated_at"], item["id"]))]


@contextmanager
def _target(output: Path | None, force: bool) -> Iterator[BinaryIO]:
    """Under another name until it is whole."""
    if output is None:
        yield sys.stdout.buffer
        return
    if output.exists() and not force:
        raise CommandError(f"{output} is there already. Choose another name, or give --force.")
    try:
        fd, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {os.strerror(error.errno or 0)}.") from None
    try:
        with os.fdopen(fd, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        Path(name).replace(output)
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {os.strerror(error.errno or 0)}.") from None
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def _source(file: Path) -> Iterator[BinaryIO]:
    """Something that can be read twice: first it is looked through, then it is sent."""
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
        raise CommandError(f"{file} cannot be read: {os.strerror(error.errno or 0)}.") from None


def _sections(content: BinaryIO, name: str) -> list[tuple[int, int]]:
    """Where each session begins and ends. CommandError: something is wrong, and nothing was sent."""
    reader, start = Reader(), 0
    found: list[tuple[int, int]] = []
    content.seek(0)
    try:
        at = 0
        for line in content:
            at += len(line)
            if isinstance(reader.read(line.rstrip(b"\r\n")), Finished):
                found.append((start, at))
                start = at
        reader.finish()
    except Invalid as error:
        raise CommandError(f"{name}, {error}. Nothing was imported.") from None
    if not found:
        raise CommandError(f"{name} is empty. Nothing was imported.", Exit.FAILED)
    return found


async def _send(line: Line, content: BinaryIO, start: int, end: int) -> list[Any]:
    async def body() -> AsyncIterator[bytes]:
        content.seek(start)
        left = end - start
        while left > 0 and (chunk := content.read(min(left, _CHUNK))):
            left -= len(chunk)
            yield chunk

    async with line.client.stream("POST", path("import"), data=body(), headers={"Content-Type": LINES}) as answer:
        items: list[Any] = (await answer.json())["items"]
        return items
