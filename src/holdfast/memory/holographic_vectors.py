"""Holographic vectors for similarity search, without a model: a text is the superposition of its words, of their
trigrams, and of its topic bound to a role. A feature is 1,024 pseudo-random phases; binding adds phases, superposing
adds points of the unit circle, and the quadrant of each sum is stored in two bits. Unrelated texts agree in half of the
bits, within a hundredth."""

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holdfast.memory.keywords import keywords, topics

PHASES: Final = 1024
BYTES: Final = PHASES * 2 // 8
LANES: Final = BYTES // 8
_TABLE: Final = 1 << 16
_HALF: Final = LANES // 2
_CANDIDATES: Final = 2048
_BLOCK: Final = 16_384  # Rows that are scanned together, so that they stay in the processor's cache
_WORD_WEIGHT, _TRIGRAM_WEIGHT, _TOPIC_WEIGHT = 1.0, 0.8, 1.2

Lanes = NDArray[np.uint64]


def _table(seed: int) -> NDArray[np.uint8]:
    """Must never change, because stored vectors depend on it. Each offset in it begins a vector."""
    drawn = np.random.Generator(np.random.PCG64(seed)).integers(0, 256, _TABLE + PHASES, dtype=np.uint8)
    return np.lib.stride_tricks.sliding_window_view(drawn, PHASES)  # a view that cannot be written to


_FIRST: Final = _table(1)
_SECOND: Final = _table(2)
_CIRCLE: Final = np.exp(2j * np.pi * np.arange(256) / 256).astype(np.complex64)


def encode(text: str, about: str = "") -> bytes:
    """`about`: the topic of a fact, if known; the topic of a question is guessed from its words."""
    features: dict[str, float] = {}
    for word in keywords(text):
        features[f"word {word}"] = features.get(f"word {word}", 0.0) + _WORD_WEIGHT
        trigrams = _trigrams(word)
        for trigram in trigrams:
            name = f"piece {trigram}"
            features[name] = features.get(name, 0.0) + _TRIGRAM_WEIGHT / len(trigrams) ** 0.5
    roles = dict.fromkeys([*topics(text), *topics(about)], _TOPIC_WEIGHT) | dict.fromkeys(keywords(about), _WORD_WEIGHT)
    if not features and not roles:
        return bytes(BYTES)
    names = [*features, *(f"word {word}" for word in roles)]
    bound = np.repeat([0, _offsets("role about")[0]], [len(features), len(roles)])
    offsets = np.array([_offsets(name) for name in names])
    phases = _FIRST[offsets[:, 0]] + _SECOND[offsets[:, 1]]  # bytes: the sum wraps around the circle
    phases = phases + np.where(bound[:, None] > 0, _FIRST[bound], 0).astype(np.uint8)
    weights = np.array([*features.values(), *roles.values()], dtype=np.float32)
    total = (weights[:, None] * _CIRCLE[phases]).sum(axis=0)  # no matrix product: its threads contend
    return np.packbits(np.concatenate([total.real >= 0, total.imag >= 0])).tobytes()


def _offsets(feature: str) -> tuple[int, int]:
    digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest[:2], "big"), int.from_bytes(digest[2:], "big")


def _trigrams(word: str) -> list[str]:
    """What `house` and `houses`, or a word and its misspelling, have in common."""
    padded = f"^{word}$"
    return [padded[at : at + 3] for at in range(max(1, len(padded) - 2))]


def lanes(vector: bytes) -> Lanes:
    return np.frombuffer(vector, dtype=np.uint64)


class Matrix:
    """Vectors by row, stored column by column so that a scan reads memory in order. The capacity grows by doubling."""

    def __init__(self) -> None:
        self._columns: Lanes = np.zeros((LANES, 1024), dtype=np.uint64)
        self._used: NDArray[np.bool_] = np.zeros(1024, dtype=np.bool_)
        self.rows = 0

    def put(self, rows: Sequence[int], vectors: Sequence[bytes]) -> None:
        """Add or replace rows, in any order, each once."""
        last = max(rows, default=-1)
        while last >= self._used.size:
            self._columns = np.concatenate([self._columns, np.zeros_like(self._columns)], axis=1)
            self._used = np.concatenate([self._used, np.zeros_like(self._used)])
        in_a_row = list(rows) == list(range(last + 1 - len(rows), last + 1))
        place = slice(last + 1 - len(rows), last + 1) if in_a_row else list(rows)  # new rows are mostly consecutive
        self._columns[:, place] = lanes(b"".join(vectors)).reshape(len(rows), LANES).T
        self._used[place] = True
        self.rows = max(self.rows, last + 1)

    def clear(self, row: int) -> None:
        self._used[row] = False

    def nearest(self, vector: bytes, limit: int) -> list[tuple[int, float]]:
        """The rows that agree most, and how much: 1 is equal, 0.5 is chance. If there are very many, half of each
        vector is compared first, and only the best thousands are compared whole."""
        if not self.rows or vector == bytes(BYTES):
            return []
        columns, wanted, rows = self._columns, lanes(vector), self.rows
        differing = np.full(rows, PHASES * 2, dtype=np.uint16)
        first = _HALF if rows > _CANDIDATES else LANES
        _count_differing_bits(columns, wanted, first, differing)
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


def _count_differing_bits(columns: Lanes, wanted: Lanes, count: int, differing: NDArray[np.uint16]) -> None:
    """Count the bits in which each row differs in the first lanes, block by block and without temporary arrays."""
    mixed, bits = np.empty(_BLOCK, dtype=np.uint64), np.empty(_BLOCK, dtype=np.uint8)
    for start in range(0, differing.size, _BLOCK):
        sums = differing[start : start + _BLOCK]
        sums[:] = 0
        size = sums.size
        for lane in range(count):
            np.bitwise_xor(columns[lane, start : start + size], wanted[lane], out=mixed[:size])
            np.bitwise_count(mixed[:size], out=bits[:size])
            np.add(sums, bits[:size], out=sums)
