"""Validated sections of an export, in a temporary file: nothing is stored before the whole source has been read."""

from collections.abc import Callable, Iterable, Iterator
from os import SEEK_END
from typing import BinaryIO, Final

from holdfast.core.errors import InvalidInputError
from holdfast.core.export_format import ExportedFile, ExportedSession
from holdfast.core.file_errors import storage_errors
from holdfast.core.size_text import size_text
from holdfast.engine.export_import import MAX_LINE, MAX_SESSION, START, FileRules
from holdfast.engine.export_lines import FileChunk, ImportReader, ImportStep

_CHUNK: Final = 256 * 1024
_UNUSABLE: Final = "The import cannot be stored in a temporary file"
_CONTENT: Final = b'{"type":"content"'


class SectionIndex:
    """Validates the lines of an export and notes where each section begins and ends. With `rules`, a file that the
    import would refuse is an error already here."""

    def __init__(self, rules: FileRules | None = None) -> None:
        self._rules = rules
        self._file_start = b""
        self.sections: list[tuple[int, int]] = []
        self._reader = ImportReader()
        self._start = 0
        self._at = 0
        self._size = 0

    def read(self, source: BinaryIO) -> Iterator[bytes]:
        """Yields each line once it is valid. Raises InvalidInputError, which names the line; at the end also if the
        last section is incomplete."""
        while line := source.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                raise InvalidInputError(f"line {self._reader.lines + 1}", f"is longer than {size_text(MAX_LINE)}")
            self._add(line)
            yield line
        self._reader.finish()

    def _add(self, line: bytes) -> None:
        self._at += len(line)
        step = self._reader.read(line.rstrip(b"\r\n"))
        if not isinstance(step, FileChunk):
            self._size += len(line)
        if self._size > MAX_SESSION:
            raise InvalidInputError(
                f"line {self._reader.lines}", f"the session is larger than {size_text(MAX_SESSION)}"
            )
        if self._rules is not None:
            self._check_file(self._rules, step)
        if isinstance(step, ExportedSession):
            self.sections.append((self._start, self._at))
            self._start, self._size = self._at, 0

    def _check_file(self, rules: FileRules, step: ImportStep) -> None:
        problem = None
        match step:
            case ExportedFile() as file:
                self._file_start = b""
                problem = rules.size_problem(file)
            case FileChunk(file, data, last):
                self._file_start += data[: START - len(self._file_start)]
                problem = rules.type_problem(self._file_start, file) if last else None
            case _:
                return
        if problem is not None:
            raise InvalidInputError(f"line {self._reader.lines}", f"file {file.id!r} {problem}")


class SectionSpool:
    """`require_space` is called with the size of each line before it is written, and can refuse it."""

    def __init__(self, file: BinaryIO, require_space: Callable[[int], object] = lambda size: None) -> None:
        self.sections: list[tuple[int, int]] = []
        self._file = file
        self._require_space = require_space
        self._at = 0

    def add(self, lines: Iterable[bytes]) -> None:
        """Takes over a section that a reader made, which is valid except for its size."""
        start, size = self._at, 0
        for line in lines:
            self._write(line)
            size += 0 if line.startswith(_CONTENT) else len(line)
            if len(line) > MAX_LINE or size > MAX_SESSION:
                problem = (
                    f"a message is larger than {size_text(MAX_LINE)}, or all of them than {size_text(MAX_SESSION)}"
                )
                raise InvalidInputError(f"chat {len(self.sections) + 1}", problem)
        self.sections.append((start, self._at))

    def add_export(self, source: BinaryIO, rules: FileRules, progress: Callable[[int, int], object]) -> None:
        """Validates and takes over an export in our own format. `progress` gets the bytes done and in total."""
        index = SectionIndex(rules)
        total = source.seek(0, SEEK_END)
        source.seek(0)
        for line in index.read(source):
            self._write(line)
            progress(self._at, total)
        self.sections = index.sections

    def _write(self, line: bytes) -> None:
        self._require_space(len(line))
        with storage_errors(_UNUSABLE):
            self._file.write(line)
        self._at += len(line)


def read_section(file: BinaryIO, section: tuple[int, int]) -> Iterator[bytes]:
    start, end = section
    file.seek(start)
    while start < end and (chunk := file.read(min(end - start, _CHUNK))):
        start += len(chunk)
        yield chunk
