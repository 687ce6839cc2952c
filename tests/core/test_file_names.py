"""Names of files as text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.file_names import archive_name

NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: b"/" not in name and b"\0" not in name)


def _name_of(written: str) -> bytes:
    pieces = re.split(r"%([0-9A-Fa-f]{2})", written)
    return b"".join(bytes.fromhex(piece) if n % 2 else piece.encode() for n, piece in enumerate(pieces))


@given(NAMES | st.text(alphabet="%0aACoNnul. \n:ñ", min_size=1).map(str.encode))
def test_names_in_an_archive_are_distinct(name: bytes) -> None:
    """Each name leads back to its file, so no two files have the same."""
    assert _name_of(archive_name(name)) == name


@pytest.mark.parametrize(
    "name",
    [
        *("CON", "con", "nul.txt", "AUX.tar.gz", "prn .md", "com1", "LPT9.log", "com³"),
        *("ends with a dot.", "ends with a space ", "a:b", "..\\evil", "a?"),
    ],
)
def test_names_that_another_system_would_misread_are_escaped(name: str) -> None:
    """Devices, drives and separators, and endings that Windows drops."""
    written = archive_name(name.encode())
    assert written != name
    assert not re.match(r"(?i)(con|prn|aux|nul|com.|lpt.)\s*(\.|$)", written)
    assert not re.search(r"[:\\?]|[. ]$", written)


@pytest.mark.parametrize("name", ["a.txt", "100% done.txt", "console.log", "nullable.py", "com10", ".env", "größe"])
def test_other_names_are_written_as_they_are(name: str) -> None:
    """A percent sign too, unless it would look like an escaped character."""
    assert archive_name(name.encode()) == name
