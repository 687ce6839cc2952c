"""The temporary file that sections are collected in, and the limits of what is read into it."""

import io
import json

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.importers import section_spool
from holdfast.importers.section_spool import SectionSpool, read_section
from tests.engine.test_export_import import RULES
from tests.engine.test_import_reader import END, MESSAGE, SESSION

SECTION = b"".join(json.dumps(line).encode() + b"\n" for line in (SESSION, MESSAGE, END))


def test_an_export_is_taken_over_with_its_progress() -> None:
    """Each section can be read again, and the progress ends with all bytes; it can stop the work."""
    seen: list[tuple[int, int]] = []
    file = io.BytesIO()
    spool = SectionSpool(file)
    spool.add_export(io.BytesIO(SECTION * 2), RULES, lambda done, total: seen.append((done, total)))
    assert [b"".join(read_section(file, section)) for section in spool.sections] == [SECTION] * 2
    assert (len(seen), seen[-1]) == (6, (2 * len(SECTION), 2 * len(SECTION)))


def test_a_line_without_an_end_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading stops just behind the limit of a line, so an endless one does not fill the memory."""
    monkeypatch.setattr(section_spool, "MAX_LINE", 1000)
    source = io.BytesIO(SECTION + b" " * 100_000)
    with pytest.raises(InvalidInputError, match="line 4: is longer than 1000 bytes"):
        SectionSpool(io.BytesIO()).add_export(source, RULES, lambda done, total: None)
    assert source.tell() == len(SECTION) + 1001


def test_a_session_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of one session count together, those of two do not."""
    monkeypatch.setattr(section_spool, "MAX_SESSION", len(SECTION))
    SectionSpool(io.BytesIO()).add_export(io.BytesIO(SECTION * 2), RULES, lambda done, total: None)
    monkeypatch.setattr(section_spool, "MAX_SESSION", len(SECTION) - 1)
    with pytest.raises(InvalidInputError, match="line 3: the session is larger than"):
        SectionSpool(io.BytesIO()).add_export(io.BytesIO(SECTION), RULES, lambda done, total: None)
