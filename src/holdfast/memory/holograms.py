"""Holographic vectors: a text as the superposition of its words and what they are made of, each a vector of phases, and
of what it is about, bound to its role. Texts that share words, or parts of them, or a topic point the same way.

A feature is 1,024 pseudo-random phases; binding adds phases, superposing adds the numbers on the unit circle. What is
kept of the sum is the quadrant of each phase, two bits: 256 bytes per text. Two texts that share nothing agree in half
of the bits, give or take a hundredth; a scan of all is XOR and counting bits. No network, no training, no model.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holdfast.memory.words import telling, topics

PHASES: Final = 1024
BYTES: Final = PHASES * 2 // 8
LANES: Final = BYTES // 8
_TABLE: Final = 1 << 16
_BLOCK: Final = 16_384
"""Rows that are looked at together: what is in work stays in the processor's cache."""
_WHOLE, _PIECES, _TOPIC = 1.0, 0.8, 1.2

Lanes = NDArray[np.uint64]


def _table(seed: int) -> NDArray[np.uint8]:
    """Never to be changed: vectors that were kept rest on it. Each place in it is the beginning of a vector."""
    drawn = np.random.Generator(np.random.PCG64(seed)).integers(0, 256, _TABLE + PHASES, dtype=np.uint8)
    return np.lib.stride_tricks.sliding_window_view(drawn, PHASES)  # a view that cannot be written to


_FIRST: Final = _table(1)
_SECOND: Final = _table(2)
_CIRCLE: Final = np.exp(2j * np.pi * np.arange(256) / 256).astype(np.complex64)


def encode(text: str, about: str = "") -> bytes:
    """`about`: the topic of a fact, where it is known; a question's is guessed from its words."""
    features: dict[str, float] = {}
    for word in telling(text):
        features[f"word {word}"] = features.get(f"word {word}", 0.0) + _WHOLE
        pieces = _pieces(word)
        for piece in pieces:
            features[f"piece {piece}"] = features.get(f"piece {piece}", 0.0) + _PIECES / len(pieces) ** 0.5
    roles = dict.fromkeys([*topics(text), *topics(about)], _TOPIC) | dict.fromkeys(telling(about), _WHOLE)
    if not features and not roles:
        return bytes(BYTES)
    names = [*features, *(f"word {word}" for word in roles)]
    bound = np.repeat([0, _seat("role about")[0]], [len(features), len(roles)])
    seats = np.array([_seat(name) for name in names])
    phases = _FIRST[seats[:, 0]] + _SECOND[seats[:, 1]]  # both bytes: the sum goes round the circle by itself
    phases = phases + np.where(bound[:, None] > 0, _FIRST[bound], 0).astype(np.uint8)
    weights = np.array([*features.values(), *roles.values()], dtype=np.float32)
    total = weights @ _CIRCLE[phases]
    return np.packbits(np.concatenate([total.real >= 0, total.imag >= 0])).tobytes()


def _seat(feature: str) -> tuple[int, int]:
    digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest[:2], "big"), int.from_bytes(digest[2:], "big")


def _pieces(word: str) -> list[str]:
    """Three letters at a time: what `house` and `houses`, or a word and its misspelling, have in common."""
    padded = f"^{word}$"
    return [padded[at : at + 3] for at in range(max(1, len(padded) - 2))]


def lanes(vector: bytes) -> Lanes:
    return np.frombuffer(vector, dtype=np.uint64)


class Matrix:
    """Vectors by row, kept column by column, so that a scan reads memory in order. Rows are added, replaced and
    emptied; room for more is made by doubling."""

    def __init__(self) -> None:
        self._columns: Lanes = np.zeros((LANES, 1024), dtype=np.uint64)
        self._used: NDArray[np.bool_] = np.zeros(1024, dtype=np.bool_)
        self.rows = 0

    def set(self, row: int, vector: bytes) -> None:
        while row >= self._used.size:
            self._columns = np.concatenate([self._columns, np.zeros_like(self._columns)], axis=1)
            self._used = np.concatenate([self._used, np.zeros_like(self._used)])
        self._columns[:, row] = lanes(vector)
        self._used[row] = True
        self.rows = max(self.rows, row + 1)

    def clear(self, row: int) -> None:
        self._used[row] = False

    def nearest(self, vector: bytes, limit: int) -> list[tuple[int, float]]:
        """Rows that agree most, with how much: 1 is the same, 0.5 is by chance."""
        if not self.rows or vector == bytes(BYTES):
            return []
        wanted, differing = lanes(vector), np.empty(self.rows, dtype=np.uint16)
        for start in range(0, self.rows, _BLOCK):
            end = min(start + _BLOCK, self.rows)
            sums = np.zeros(end - start, dtype=np.uint16)
            for lane in range(LANES):
                sums += np.bitwise_count(self._columns[lane, start:end] ^ wanted[lane])
            differing[start:end] = sums
        differing[~self._used[: self.rows]] = PHASES * 2
        count = min(limit, self.rows)
        best = np.argpartition(differing, count - 1)[:count]
        ordered = best[np.argsort(differing[best], kind="stable")]
        return [(int(row), 1.0 - float(differing[row]) / (PHASES * 2)) for row in ordered if self._used[row]]


def agreement(one: bytes, other: bytes) -> float:
    bits: Sequence[int] = np.bitwise_count(lanes(one) ^ lanes(other)).tolist()
    return 1.0 - sum(bits) / (PHASES * 2)
