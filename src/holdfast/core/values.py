"""Dataclasses that are made in less than half the time.

To a type checker these are the standard library's, and so they are to whoever uses a value. What differs is how a
class comes to be: the standard library writes and compiles up to six functions for each, which for some two hundred
classes was a quarter of a start. Here only `__init__` is written, and the rest is shared. What the shared ones do not
know is refused when the class is made.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:
    import dataclasses
    from dataclasses import MISSING
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(cls=None, /, *, frozen=False, eq=True, **options):
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, **options)
        cls.__doc__ = cls.__doc__ or cls.__name__  # or it would be made of a signature, which takes long
        made = dataclasses.dataclass(cls, init=not frozen, repr=False, eq=False, **options)
        fields = dataclasses.fields(made)
        _check(cls, made, fields, frozen, eq)
        names = [field.name for field in fields]
        made.__fields_of__ = staticmethod(_getter(names))
        made.__places__ = (
            None if any(field.kw_only for field in fields) else {name: at for at, name in enumerate(names)}
        )
        shared = {"__repr__": _repr}
        if eq:
            shared |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
        if frozen:
            shared |= {"__init__": _init(made, fields), "__reduce__": _reduce}
            shared |= {"__setattr__": _refuse, "__delattr__": _refuse}
        for name, method in shared.items():
            if name not in cls.__dict__:
                setattr(made, name, method)
        return made

    def replace(value, /, **changes):
        """By places, for naming thirty fields takes longer than giving them."""
        cls = value.__class__
        places = cls.__dict__.get("__places__")
        if places is None:  # made by the standard library, or has fields that must be named
            return dataclasses.replace(value, **changes)
        fields = list(cls.__fields_of__(value))
        for name, other in changes.items():
            if name not in places:
                raise TypeError(f"{cls.__qualname__} has no field {name!r}")
            fields[places[name]] = other
        return cls(*fields)

    def _check(cls, made, fields, frozen, eq):
        if frozen and "__slots__" not in made.__dict__:
            raise TypeError(f"{cls.__qualname__}: what is frozen has slots; say slots=True.")
        if hasattr(cls, "__post_init__"):
            raise TypeError(f"{cls.__qualname__}: a dataclass of ours has no __post_init__; use dataclasses.")
        if eq and "__eq__" in cls.__dict__:
            raise TypeError(f"{cls.__qualname__} has an __eq__ of its own; say eq=False.")
        for field in fields:
            if not field.init or not field.compare or field.hash is not None:
                raise TypeError(
                    f"{cls.__qualname__}.{field.name}: every field is given, and compared; use dataclasses."
                )

    def _getter(names):
        """All fields as a tuple."""
        if len(names) > 1:
            return attrgetter(*names)
        return lambda value: tuple([getattr(value, name) for name in names])

    def _init(made, fields):
        """The only function that is made for a class: it must be as quick as if it had been written out. It sets each
        slot by itself, past the `__setattr__` that refuses: half the time of `object.__setattr__`."""
        known = {"_MISSING": MISSING}
        names, body = ["self"], []
        for field in sorted(fields, key=lambda field: field.kw_only):  # stable
            name = field.name
            if field.kw_only and "*" not in names:
                names.append("*")
            value = name
            if field.default_factory is not MISSING:
                known[f"_make_{name}"] = field.default_factory
                value = f"_make_{name}() if {name} is _MISSING else {name}"
                names.append(f"{name}=_MISSING")
            elif field.default is not MISSING:
                known[f"_default_{name}"] = field.default
                names.append(f"{name}=_default_{name}")
            else:
                names.append(name)
            known[f"_set_{name}"] = getattr(made, name).__set__
            body.append(f"    _set_{name}(self, {value})")
        exec("\n".join([f"def __init__({', '.join(names)}):", *(body or ["    pass"])]), known)
        return known["__init__"]

    def _refuse(self, name, value=None):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _equal(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self.__fields_of__(self) == self.__fields_of__(other)

    def _hash(self):
        return hash(self.__fields_of__(self))

    def _reduce(self):
        return _made, (self.__class__, {field.name: getattr(self, field.name) for field in dataclasses.fields(self)})

    def _made(cls, fields):
        return cls(**fields)

    @recursive_repr()
    def _repr(self):
        shown = [field.name for field in dataclasses.fields(self) if field.repr]
        return f"{self.__class__.__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"
