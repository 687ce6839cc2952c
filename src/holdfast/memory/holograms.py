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
_HALF: Final = LANES // 2
_CANDIDATES: Final = 2048
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
    total = (weights[:, None] * _CIRCLE[phases]).sum(axis=0)  # no matrix product: its threads would wait for each other
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

    def put(self, rows: Sequence[int], vectors: Sequence[bytes]) -> None:
        """In any order, each once."""
        last = max(rows, default=-1)
        while last >= self._used.size:
            self._columns = np.concatenate([self._columns, np.zeros_like(self._columns)], axis=1)
            self._used = np.concatenate([self._used, np.zeros_like(self._used)])
        # most are new: at the end, one after the other
        in_a_row = list(rows) == list(range(last + 1 - len(rows), last + 1))
        place = slice(last + 1 - len(rows), last + 1) if in_a_row else list(rows)
        self._columns[:, place] = lanes(b"".join(vectors)).reshape(len(rows), LANES).T
        self._used[place] = True
        self.rows = max(self.rows, last + 1)

    def clear(self, row: int) -> None:
        self._used[row] = False

    def nearest(self, vector: bytes, limit: int) -> list[tuple[int, float]]:
        """Rows that agree most, with how much: 1 is the same, 0.5 is by chance. Of very many, half of each vector is
        looked at first: what agrees at all is among the best thousands of those."""
        if not self.rows or vector == bytes(BYTES):
            return []
        columns, wanted, rows = self._columns, lanes(vector), self.rows
        differing = np.full(rows, PHASES * 2, dtype=np.uint16)
        first = _HALF if rows > _CANDIDATES else LANES
        _count(columns, wanted, first, differing)
        differing[~self._used[:rows]] = PHASES * 2
        best = np.arange(rows)
        if first < LANES:
            best = np.argpartition(differing, _CANDIDATES)[:_CANDIDATES]
            best = best[self._used[best]]
            rest = columns[first:, best] ^ wanted[first:, None]
            differing = differing[best] + np.bitwise_count(rest).sum(axis=0, dtype=np.uint16)
        order = np.argsort(differing, kind="stable")[:limit]
        found = zip(best[order].tolist(), differing[order].tolist(), strict=True)
        return [(row, 1.0 - bits / (PHASES * 2)) for row, bits in found if bits < PHASES * 2]


def _count(columns: Lanes, wanted: Lanes, count: int, differing: NDArray[np.uint16]) -> None:
    """Bits in which each row differs, over the first lanes, block by block and without a temporary array."""
    mixed, bits = np.empty(_BLOCK, dtype=np.uint64), np.empty(_BLOCK, dtype=np.uint8)
    for start in range(0, differing.size, _BLOCK):
        sums = differing[start : start + _BLOCK]
        sums[:] = 0
        size = sums.size
        for lane in range(count):
            np.bitwise_xor(columns[lane, start : start + size], wanted[lane], out=mixed[:size])
            np.bitwise_count(mixed[:size], out=bits[:size])
            np.add(sums, bits[:size], out=sums)


def agreement(one: bytes, other: bytes) -> float:
    bits: Sequence[int] = np.bitwise_count(lanes(one) ^ lanes(other)).tolist()
    return 1.0 - sum(bits) / (PHASES * 2)
