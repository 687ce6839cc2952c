"""Results of the bench: figures, and the reasons for missing ones."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` is in `unit`; `target` is its upper limit."""

    part: str
    what: str
    value: float
    unit: str = "ms"
    target: float | None = None
    server: str = "Holdfast"

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.value <= self.target


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A measurement that failed or was left out, with the reason."""

    part: str
    what: str
    reason: str
    server: str = "Holdfast"


FigureSteps = Iterator[Figure | MissingFigure | str]
"""Yields the description of each step and the figures it gives."""
