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
    least: float | None = None  # Its lower limit

    @property
    def met(self) -> bool | None:
        if self.target is None and self.least is None:
            return None
        return (self.target is None or self.value <= self.target) and (self.least is None or self.value >= self.least)


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A measurement that failed or was left out, with the reason."""

    part: str
    what: str
    reason: str
    server: str = "Holdfast"


FigureSteps = Iterator[Figure | MissingFigure | str]
"""Yields the description of each step and the figures it gives."""
