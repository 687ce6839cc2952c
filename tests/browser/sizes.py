"""Window sizes for tests of whole features. `make test` runs each at one of them, `make test-all` at both."""

from typing import Final

import pytest

DESK: Final = (1200, 900)
PHONE: Final = (360, 740)

_desk, _phone = (DESK, "desk"), (PHONE, "phone")


def _sizes(first: tuple[tuple[int, int], str], other: tuple[tuple[int, int], str]) -> pytest.MarkDecorator:
    long = pytest.param(other[0], id=other[1], marks=pytest.mark.soak)
    return pytest.mark.parametrize("size", [pytest.param(first[0], id=first[1]), long])


on_desk = _sizes(_desk, _phone)
on_phone = _sizes(_phone, _desk)
