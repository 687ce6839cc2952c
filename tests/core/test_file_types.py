"""What is text: one answer for tools, searches, uploads and previews."""

import pytest

from holdfast.core.file_types import is_utf8_text, text_encoding
from holdfast.server.uploads import detect_media_type


@pytest.mark.parametrize(
    ("start", "is_text"),
    [
        (b"", True),
        ("größe".encode(), True),
        ("größe".encode()[:3], True),  # ends within a character
        ("𝄞".encode()[:3], True),
        (b"a\0b", False),
        (b"caf\xe9", True),  # may be the beginning of a character
        (b"caf\xe9 in Latin-1", False),
        (b"ends wrong\xff", False),
        ("sixteen".encode("utf-16"), False),
    ],
)
def test_utf8_is_text(start: bytes, is_text: bool) -> None:
    """Without NUL; only what can be cut off at the end may be missing."""
    assert is_utf8_text(start) == is_text
    assert (detect_media_type(start, "text/plain") is not None) == is_text
    assert (text_encoding(start) == "utf-8-sig") == is_text
