"""A temporary file for what is too large to be held in memory: the messages of a conversation while it is converted."""

import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from holdfast.core.file_errors import storage_errors

_BUFFER: Final = 1024 * 1024  # Bytes at the end that are still in memory; most conversations are smaller
_SIZE_BITS: Final = 30


class Scratch:
    """`require_space` is called with the number of bytes before they are written, and can refuse them; `check` whenever
    something is added or read, and what it raises stops the import. Without `directory` the file is in the system's
    directory for temporary files. StorageError: it cannot be used; that is no fault of what is imported."""

    def __init__(
        self,
        directory: Path | None = None,
        require_space: Callable[[int], object] = lambda size: None,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self.check = check
        self._directory = directory
        self._require_space = require_space
        self._file: BinaryIO | None = None
        self._written = 0
        self._buffer = bytearray()

    @property
    def size(self) -> int:
        return self._written + len(self._buffer)

    def add(self, data: bytes) -> int:
        """The place of the data, for `read`."""
        self.check()
        if len(data) >> _SIZE_BITS:
            raise ValueError("the data is too large")
        place = self.size << _SIZE_BITS | len(data)
        self._buffer += data
        if len(self._buffer) > _BUFFER:
            self._write()
        return place

    def read(self, place: int) -> bytes:
        self.check()
        at, size = place >> _SIZE_BITS, place & (1 << _SIZE_BITS) - 1
        if at >= self._written:
            return bytes(self._buffer[at - self._written : at - self._written + size])
        assert self._file is not None
        with self._errors():
            return os.pread(self._file.fileno(), size, at)

    def truncate(self, size: int) -> None:
        """Forget what was added since `size` was the size."""
        if size >= self._written:
            del self._buffer[size - self._written :]
            return
        self._buffer.clear()
        self._written = size
        if self._file is not None:
            with self._errors():
                self._file.truncate(size)

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # what it could not write is not needed
                self._file.close()

    def _write(self) -> None:
        self._require_space(len(self._buffer))
        with self._errors():
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115  see `close`
            self._file.seek(self._written)
            self._file.write(self._buffer)
            self._file.flush()
        self._written += len(self._buffer)
        self._buffer.clear()

    def _errors(self) -> AbstractContextManager[None]:
        return storage_errors(f"Temporary files in {self._directory or tempfile.gettempdir()} cannot be used")
