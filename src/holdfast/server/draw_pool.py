"""A set from which the oldest or a random member is drawn."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
Random = Callable[[], float]
"""Returns a number from 0 to below 1."""


class DrawPool(Generic[T]):
    """No operation takes longer when there are more."""

    __slots__ = ("_members", "_positions")

    def __init__(self) -> None:
        self._positions: OrderedDict[T, int] = OrderedDict()  # In the order in which they came
        self._members: list[T] = []

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member: T) -> bool:
        return member in self._positions

    def add(self, member: T) -> None:
        self._positions[member] = len(self._members)
        self._members.append(member)

    def discard(self, member: T) -> None:
        position = self._positions.pop(member, None)
        if position is None:
            return
        last = self._members.pop()
        if last != member:
            self._members[position] = last
            self._positions[last] = position

    def oldest(self) -> T:
        return next(iter(self._positions))

    def pick(self, random: Random) -> T:
        return self._members[int(random() * len(self._members))]
