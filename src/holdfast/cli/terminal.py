"""Terminal output: styled text, tables and progress bars; plain text if the output is not a terminal.

rich is imported on first use, because `serve` needs none of it at the start.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

ReportProgress = Callable[[str, int, int], None]  # Called with the kind of item, the number done and the total
_CONTROL: Final = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}

_INVISIBLE: Final = re.compile(
    r"(?!\r?\n|\t|(?<=[^\0-\x7f])[\u200c\u200d])"
    r"[\0-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def clean(text: str) -> str:
    """Removes control characters, so that text from elsewhere cannot send commands to the terminal."""
    return text.translate(_CONTROL)


def escape_invisible(text: str) -> str:
    """Makes characters visible that are not shown or change the order of others, so that a call reads as it will run.

    The joiners that emoji and some scripts need between their own characters stay."""
    return _INVISIBLE.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\u{{{code:x}}}" if code > 0xFFFF else f"\\u{code:04x}"


def one_line(text: str, width: int) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: max(1, width - 1)] + "…"


_MIN_TABLE_WIDTH: Final = 72  # Narrower terminals get two lines per row instead of columns


class Terminal:
    """Results go to stdout and notes to stderr, so that results can be piped."""

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
        """Prints a part of a line immediately."""
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

    def raw(self, text: str) -> None:
        """Prints the text unchanged, for programs."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "Nothing found.") -> None:
        """Prints columns on a wide terminal, two lines per row on a narrow one, and tab-separated fields if the output
        is not a terminal. The first cell is an id and is never truncated."""
        if not self.out.is_terminal:
            for row in rows:
                self.raw("\t".join(" ".join(clean(cell).split()) for cell in row) + "\n")
            return
        if not rows:
            self.note(empty)
            return
        if self.width < _MIN_TABLE_WIDTH:
            for first, *rest in rows:
                self.line(first)
                self.line("  " + one_line(" · ".join(cell for cell in rest if cell), self.width - 3), "dim")
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold", width=self.width)
        for n, name in enumerate(headers):
            last = n == len(headers) - 1
            table.add_column(name, overflow="ellipsis" if last else "fold", no_wrap=True, ratio=1 if last else None)
        for row in rows:
            table.add_row(*(Text(" ".join(clean(cell).split())) for cell in row))
        Console(highlight=False).print(table)

    def items(
        self,
        items: Sequence[Any],
        as_json: bool,
        headers: Sequence[str],
        row: Callable[[Any], Sequence[str]],
        empty: str = "Nothing found.",
    ) -> None:
        """Prints a list as JSON or as a table, or `empty` if a person would see no rows."""
        if as_json:
            self.json(items)
        else:
            self.table(headers, [row(item) for item in items], empty)

    @contextmanager
    def progress(self) -> "Iterator[ReportProgress]":
        """Yields a function that shows progress: one bar for each kind of item. The bars are on stderr, and hidden if
        that is not a terminal."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskID, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
        disable, tasks = not self.err.is_terminal, dict[str, TaskID]()
        with Progress(*columns, console=Console(stderr=True), transient=True, disable=disable) as bars:

            def report(what: str, done: int, total: int) -> None:
                if what not in tasks:
                    tasks[what] = bars.add_task(what)
                bars.update(tasks[what], completed=done, total=total)

            yield report


def _styled(text: str, style: str) -> "Text":
    from rich.text import Text

    return Text(clean(text), style=style)


def count_of(number: int, noun: str) -> str:
    """Such as `1 session` or `2 sessions`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_age(text: str | None, now: datetime | None = None) -> str:
    """The age of a time stamp, such as `5 min`. Up to a minute in the future counts as now: clocks differ."""
    if not text:
        return ""
    at = datetime.fromisoformat(text)
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (172800, 3600, "h"), (5184000, 86400, "d")):
        if -60 <= seconds < limit:
            return f"{max(0, int(seconds // size))} {unit}"
    return at.astimezone().strftime("%Y-%m-%d")
