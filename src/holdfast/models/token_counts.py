"""Checks numbers of tokens that providers report."""

from typing import Final, TypeGuard

MAX_TOKENS: Final = 2**40
"""Far above what a call can use; the sums over a run stay below 2**53, up to which JSON numbers are exact."""


def is_token_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MAX_TOKENS


def known_token_count(value: object) -> int | None:
    return value if is_token_count(value) else None
