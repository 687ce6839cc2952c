"""Dataclasses that are made, and copied, in a third of the time.

To a type checker these are `dataclass` and `replace` of the standard library, and nobody may assign to a field of a
frozen one. What differs is how a class comes to be: the standard library writes and compiles up to six functions for
each, which for some three hundred classes was a quarter of a start. Here it writes `__init__` alone, and the rest is
shared. That `__init__` assigns plainly, so that a frozen value is also made in a third of the time. The price: that it
is frozen is checked by mypy, and not once more while the program runs.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:
    import dataclasses
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(cls=None, /, *, frozen=False, eq=True, **options):
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, **options)
        cls.__doc__ = cls.__doc__ or cls.__name__  # or it would be made of a signature, which takes long
        made = dataclasses.dataclass(cls, repr=False, eq=False, **options)
        made.__fields_named__ = names = tuple(field.name for field in dataclasses.fields(made))
        made.__fields_of__ = staticmethod(_getter(names))
        shared = {"__repr__": _repr}
        if eq:
            shared |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
        for name, method in shared.items():
            if name not in cls.__dict__:
                setattr(made, name, method)
        return made

    def replace(value, /, **changes):
        cls = value.__class__
        fields = dict(zip(cls.__fields_named__, cls.__fields_of__(value), strict=True))
        fields.update(changes)
        return cls(**fields)

    def _getter(names):
        """All fields as a tuple."""
        if len(names) > 1:
            return attrgetter(*names)
        return lambda value: tuple([getattr(value, name) for name in names])

    def _equal(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self.__fields_of__(self) == self.__fields_of__(other)

    def _hash(self):
        return hash(self.__fields_of__(self))

    @recursive_repr()
    def _repr(self):
        shown = [field.name for field in dataclasses.fields(self) if field.repr]
        return f"{self.__class__.__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"
