"""The checks of an append (epoch, seal, sequence) that all journal adapters share: an append of a node that has lost
its lease is refused here, even if the node does not know it yet."""

from collections.abc import Sequence
from typing import Final

from holdfast.core.errors import AppendRefusedError, FencedError, SealedError, SeqConflictError, TooLargeError
from holdfast.ports.journal import Append, JournalHead

MAX_EVENT_BYTES: Final = 1 << 20


def check_batch(batch: Sequence[Append]) -> None:
    if len({item.run for item in batch}) < len(batch):
        raise ValueError("a batch has at most one append per run")


def refusal(item: Append, head: JournalHead, max_bytes: int = MAX_EVENT_BYTES) -> AppendRefusedError | None:
    """The reason against this head, or in the append itself. The caller writes in the same step as it checks."""
    if item.epoch < head.epoch:
        return FencedError(item.run, item.epoch, head.epoch)
    if head.sealed or head.pruned:
        return SealedError(item.run)
    return _entry_problem(item, head.last_seq, max_bytes)


def malformed(item: Append) -> AppendRefusedError | None:
    """The reason in the append itself, whatever the journal contains."""
    first = item.entries[0].seq if item.entries else 1
    if first < 1:
        return SeqConflictError(item.run, first, 0)
    return _entry_problem(item, first - 1, MAX_EVENT_BYTES)


def _entry_problem(item: Append, last_seq: int, max_bytes: int) -> AppendRefusedError | None:
    """The first entry that does not follow the one before it, or is too large."""
    for seq, frame in item.entries:
        if seq != last_seq + 1:
            return SeqConflictError(item.run, seq, last_seq)
        last_seq = seq
        if len(frame) > max_bytes:
            return TooLargeError(item.run, len(frame), max_bytes)
    return None
