"""Sizes in bytes: the unit in which limits are written, and how messages name a size. The limits themselves stand where
they are enforced."""

from typing import Final

MIB: Final = 1024 * 1024
_UNITS: Final = ((1024**3, "GB"), (1024**2, "MB"))


def size_text(size: int) -> str:
    """Such as `50 MB`; below a megabyte in bytes."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.3g} {name}" if size < 1000 * unit else f"{size / unit:.0f} {name}"
    return f"{size} bytes"
