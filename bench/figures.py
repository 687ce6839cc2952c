"""What a part of the bench gives: figures, and where there is none, why."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` is in `unit`; `target`: at most that."""

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
class Missing:
    """A measurement that there is none of, and why."""

    part: str
    what: str
    reason: str
    server: str = "Holdfast"
