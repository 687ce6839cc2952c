"""What a person sees. Plain text where the output is no terminal; nothing that comes from elsewhere can steer one.

rich is imported where something is drawn: `serve` has a screen too, and its start need not wait for that.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

_CONTROL: Final = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def clean(text: str) -> str:
    """Without control characters: a terminal obeys them, whoever wrote them."""
    return text.translate(_CONTROL)


def one_line(text: str, width: int) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: max(1, width - 1)] + "…"


_ROOMY: Final = 72
"""Characters in a line from which on a table has columns."""


class Screen:
    """Results go to stdout, what is said about them to stderr: the first can be piped."""

    @cached_property
    def out(self) -> "Console":
        from rich.console import Console

        return Console(highlight=False, soft_wrap=True)

    @cached_property
    def err(self) -> "Console":
        from rich.console import Console

        return Console(stderr=True, highlight=False, soft_wrap=True)

    @property
    def width(self) -> int:
        return shutil.get_terminal_size((100, 24)).columns

    @property
    def is_terminal(self) -> bool:
        return self.out.is_terminal and sys.stdin.isatty()

    def write(self, text: str, style: str = "") -> None:
        """A piece of a longer text, as it comes."""
        self.out.print(_styled(text, style), end="")
        self.out.file.flush()

    def line(self, text: str = "", style: str = "") -> None:
        self.out.print(_styled(text, style))

    def note(self, text: str, style: str = "dim") -> None:
        self.err.print(_styled(text, style))

    def error(self, text: str) -> None:
        self.note(f"holdfast: {text}", "red")

    def json(self, value: Any) -> None:
        self.raw(json.dumps(value, ensure_ascii=False, indent=1) + "\n")

    def json_line(self, value: Any) -> None:
        self.raw(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")

    def raw(self, text: str) -> None:
        """For programs: exactly this."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def table(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns where there is room for them, two lines a row where there is little, and for programs fields with
        tabs between them. The first cell is never cut: it is an id, and half an id is none."""
        if not self.out.is_terminal:
            for row in rows:
                self.raw("\t".join(" ".join(clean(cell).split()) for cell in row) + "\n")
            return
        if self.width < _ROOMY:
            for first, *rest in rows:
                self.line(first)
                self.line("  " + one_line(" · ".join(cell for cell in rest if cell), self.width - 3), "dim")
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold", width=self.width)
        for n, name in enumerate(names):
            last = n == len(names) - 1
            table.add_column(name, overflow="ellipsis" if last else "fold", no_wrap=True, ratio=1 if last else None)
        for row in rows:
            table.add_row(*(Text(" ".join(clean(cell).split())) for cell in row))
        Console(highlight=False).print(table)

    def progress(self) -> "Progress":
        """On stderr; nothing where that is no terminal."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
        return Progress(*columns, console=Console(stderr=True), transient=True, disable=not self.err.is_terminal)


def _styled(text: str, style: str) -> "Text":
    from rich.text import Text

    return Text(clean(text), style=style)


def ago(text: str | None, now: datetime | None = None) -> str:
    """A time as a person says it. The server's clock may be a little ahead of ours."""
    if not text:
        return ""
    at = datetime.fromisoformat(text)
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (172800, 3600, "h"), (5184000, 86400, "d")):
        if -60 <= seconds < limit:
            return f"{max(0, int(seconds // size))} {unit}"
    return at.astimezone().strftime("%Y-%m-%d")
