"""Turns an OSError about a file that Holdfast writes into a StorageError, and one about a full disk into a
StorageFullError, so that the message says which it is. Errors of databases: `storage.sqlite.errors`."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from holdfast.core.errors import StorageError, StorageFullError, StorageUnavailableError

_NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT}


def storage_error(error: OSError, what: str) -> StorageError:
    """`what` is the beginning of the message."""
    reason = error.strerror.lower() if error.strerror else str(error)
    if error.errno in _NO_SPACE:
        return StorageFullError(f"{what}: {reason}. Free some disk space.")
    return StorageUnavailableError(f"{what}: {reason}.")


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Raise an OSError of the block as a StorageError that begins with `what`."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, what) from error
