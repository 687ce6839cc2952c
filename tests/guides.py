"""Reads what the guides tell people to type, so that tests execute it."""

import re
from pathlib import Path
from typing import Final

HOW_TO: Final = Path(__file__).parents[1] / "docs" / "how-to"
_CONTINUED: Final = re.compile(r"\\\n *")


def guide(name: str) -> str:
    return (HOW_TO / f"{name}.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a language, without the indentation of a list that they are in."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def section(page: str, heading: str) -> str:
    """What is below a heading, up to the next one of its level or above."""
    marks, title = heading.split(" ", 1)
    _, found, rest = page.partition(f"\n{marks} {title}\n")
    assert found, f"there is no heading {heading!r}"
    return re.split(rf"\n#{{1,{len(marks)}}} ", rest)[0]


def typed(page: str) -> list[list[str]]:
    """The commands of each block that shows a terminal, without prompts and output."""
    joined = [_CONTINUED.sub(" ", block) for block in blocks(page, "console")]
    return [[line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")] for text in joined]
