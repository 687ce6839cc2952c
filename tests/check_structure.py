"""Checks what linters do not: each class and type has a name of its own, classes and functions are short, and no
component writes a ref while it renders. `make check` runs it."""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
MAX_CLASS: Final = 350
MAX_FUNCTION: Final = 80
_TYPE: Final = re.compile(r"^(?:export )?(?:abstract )?(?:class|interface|type) (\w+)", re.MULTILINE)
_LOCAL_TYPE: Final = "Props"  # of the component of the file
# Formatted code has the body of a component or hook two columns in; what runs later is further in.
_REF_IN_RENDER: Final = re.compile(r"^  \w+\.current (?:\?\?)?= ", re.MULTILINE)


def main() -> int:
    found = sorted([*_python_problems(), *_web_problems()])
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


def _python_problems() -> Iterator[str]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
                longest = MAX_CLASS
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                longest = MAX_FUNCTION
            else:
                continue
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > longest:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {length} lines, more than {longest}"
    yield from _repeated(places)


def _web_problems() -> Iterator[str]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "web" / "src").rglob("*.ts*")):
        text = path.read_text()
        for match in _TYPE.finditer(text):
            if match[1] != _LOCAL_TYPE:
                places[match[1]].append(_place(path, text, match.start()))
        for match in _REF_IN_RENDER.finditer(text):
            yield f"{_place(path, text, match.start())}: writes a ref while rendering; do so in an effect"
    yield from _repeated(places)


def _place(path: Path, text: str, at: int) -> str:
    return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, at) + 1}"


def _repeated(places: dict[str, list[str]]) -> Iterator[str]:
    for name, found in places.items():
        for place in found[1:]:
            yield f"{place}: {name} is the name of another type, at {found[0]}"


if __name__ == "__main__":
    sys.exit(main())
