"""Validated sections of an export, in a temporary file: nothing is stored before the whole source has been read."""

from collections.abc import Iterator
from typing import BinaryIO, Final

from holdfast.core.export_format import ExportedSession
from holdfast.engine.export_lines import ImportReader

_CHUNK: Final = 256 * 1024


class SectionIndex:
    """Validates lines and notes where each section begins and ends."""

    def __init__(self) -> None:
        self.sections: list[tuple[int, int]] = []
        self._reader = ImportReader()
        self._start = 0
        self._at = 0

    def add(self, line: bytes) -> None:
        """Raises InvalidInputError, which names the line."""
        self._at += len(line)
        if isinstance(self._reader.read(line.rstrip(b"\r\n")), ExportedSession):
            self.sections.append((self._start, self._at))
            self._start = self._at

    def finish(self) -> None:
        """Raises InvalidInputError if the last section is incomplete."""
        self._reader.finish()


class SectionSpool:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._index = SectionIndex()

    @property
    def sections(self) -> list[tuple[int, int]]:
        return self._index.sections

    def write(self, line: bytes) -> None:
        self._index.add(line)
        self._file.write(line)

    def copy_from(self, source: BinaryIO) -> None:
        """Takes over an export in our own format."""
        for line in source:
            self.write(line)
        self._index.finish()


def read_section(file: BinaryIO, section: tuple[int, int]) -> Iterator[bytes]:
    start, end = section
    file.seek(start)
    while start < end and (chunk := file.read(min(end - start, _CHUNK))):
        start += len(chunk)
        yield chunk
