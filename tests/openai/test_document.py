"""What is written about the parameters is complete."""

import re
from pathlib import Path

from holdfast.faces.openai.requests import ChatIn, ResponseIn

DOCUMENT = Path(__file__).parents[2] / "docs" / "openai.md"


def test_the_document_names_every_parameter() -> None:
    """Whatever a call may carry is said to be honoured, refused or ignored."""
    told = set(re.findall(r"`([a-z_]+)`", DOCUMENT.read_text()))
    assert {*ResponseIn.model_fields, *ChatIn.model_fields} - told == set()
