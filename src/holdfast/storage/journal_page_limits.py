"""Limits what one read of a journal returns, by bytes, for all journal adapters."""

from collections.abc import Sequence

from holdfast.core.events import Entry


def fit(entries: Sequence[Entry], max_bytes: int | None) -> Sequence[Entry]:
    """The first entries that together have at most `max_bytes`, but at least one."""
    if max_bytes is None:
        return entries
    size = 0
    for at, (_, frame) in enumerate(entries):
        size += len(frame)
        if size > max_bytes and at:
            return entries[:at]
    return entries
