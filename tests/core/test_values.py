"""Our dataclasses behave as the standard library's do: to readers, to `match`, and to `dataclasses` itself."""

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from holdfast.core.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    name: str = field(default="here", repr=False)


@dataclass(frozen=True, slots=True)
class Place(Point):
    """With a field more, and a word of its own."""

    tags: tuple[str, ...] = field(default_factory=tuple)

    def __repr__(self) -> str:
        return "a place"


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True)
class Single:
    only: object


@dataclass(slots=True)
class Open:
    count: int = 0


@dataclass(eq=False)
class Thing:
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    a: int
    b: int = 2


def test_values_are_equal_by_their_fields() -> None:
    assert Point(1) == Point(1, 0, "here") != Point(1, 0, "there")
    assert Point(1) != Place(1)
    assert Place(1) == Place(1, tags=()) != Place(1, tags=("a",))
    assert Nothing() == Nothing()
    assert Single((1,)) == Single((1,)) != Single(1)
    assert Open(1) == Open(1) != Open(2)
    assert Thing() != Thing()
    assert Named(a=1) == Named(b=2, a=1)


def test_values_are_hashed_by_their_fields_and_what_may_change_is_not() -> None:
    assert {Point(1): "a"}[Point(1)] == "a"
    assert len({Single(1), Single(1), Single(2), Nothing(), Nothing()}) == 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(Open())
    with pytest.raises(TypeError, match="unhashable"):
        hash(Single([]))
    thing = Thing()
    assert {thing: 1}[thing] == 1


def test_nobody_assigns_to_a_frozen_one() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.z = 2  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    assert point == Point(1)
    thing = Open()
    thing.count = 3
    assert thing == Open(3)


def test_a_representation_keeps_what_is_not_to_be_shown() -> None:
    assert repr(Point(1)) == "Point(x=1, y=0)"
    assert repr(Place(1)) == "a place"
    assert repr(Nothing()) == "Nothing()"
    assert repr(Single("a")) == "Single(only='a')"
    assert repr(Thing(2)) == "Thing(count=2)"
    inside: list[object] = []
    inside.append(Single(inside))
    assert repr(inside) == "[Single(only=[...])]"


@pytest.mark.parametrize("change", [replace, dataclasses.replace], ids=["ours", "theirs"])
def test_a_copy_differs_in_what_is_named(change: Any) -> None:
    assert change(Point(1, 2), x=3) == Point(3, 2)
    assert change(Place(1, tags=("a",)), y=5) == Place(1, 5, tags=("a",))
    assert change(Named(a=1), b=3) == Named(a=1, b=3)
    assert change(Single(1)) == Single(1)
    assert change(Open(1), count=2) == Open(2)
    with pytest.raises(TypeError, match="z"):
        change(Point(1), z=3)


def test_what_is_not_supported_is_refused_when_the_class_is_made() -> None:
    """A type checker takes ours for the standard library's, and would say nothing."""

    class After:
        x: int

        def __post_init__(self) -> None: ...

    class Compares:  # noqa: PLW1641 - that is the point
        x: int

        def __eq__(self, other: object) -> bool:
            return True

    class Computed:
        x: int = field(init=False)

    class Aside:
        x: int = field(compare=False)

    for cls in (After, Compares, Computed, Aside):
        with pytest.raises(TypeError, match=cls.__name__):
            dataclass(frozen=True, slots=True)(cls)


def test_a_subclass_of_the_standard_library_is_copied_whole() -> None:
    @dataclasses.dataclass
    class More(Open):
        more: int = 0

    assert replace(More(1, 5), count=2) == More(2, 5)


def test_they_are_dataclasses_to_everybody_else() -> None:
    assert [one.name for one in dataclasses.fields(Place)] == ["x", "y", "name", "tags"]
    assert dataclasses.asdict(Named(a=1)) == {"a": 1, "b": 2}
    assert not hasattr(Point(1), "__dict__")
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)
    assert copy.deepcopy(Place(1)) == Place(1)
    assert pickle.loads(pickle.dumps(Place(1, 2))) == Place(1, 2)
    with pytest.raises(TypeError):
        Named(1)  # type: ignore[call-arg]
