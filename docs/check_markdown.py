"""Checks that Markdown wraps at 100 columns, and that the source files it names exist.

Tables, links, HTML and commands in code blocks that cannot be broken are exempt from the width.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
WIDTH: Final = 100
_EXEMPT: Final = re.compile(r"^\s*(\||<|\$ )|\]\(|://")
_FILE: Final = re.compile(r"`((?:[a-z_]+/)+[a-zA-Z_]+\.(?:py|ts|tsx))`")


def problems(path: Path) -> Iterator[str]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if len(line) > WIDTH and not _EXEMPT.search(line):
            yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns, more than {WIDTH}"
        for name in _FILE.findall(line):
            if not any((base / name).exists() for base in (ROOT, ROOT / "src" / "holdfast")):
                yield f"{path.relative_to(ROOT)}:{number}: there is no file {name}"


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [
        problem
        for name in listed.stdout.splitlines()
        if (ROOT / name).exists()
        for problem in problems(ROOT / name)
    ]
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
