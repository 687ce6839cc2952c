"""Messages as plain text, for a reader that does not get their parts: a summarizing model, or an agent program."""

from collections.abc import Sequence
from typing import Final

from holdfast.core.parts import FilePart, Part, SteeredPart, TextPart, ToolPart
from holdfast.tools.result_text import as_text, shorten

_MAX_RESULT: Final = 1000


def parts_as_text(parts: Sequence[Part]) -> str:
    """Without reasoning, plans and memories. Tool arguments and results are shortened."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, TextPart):
            lines.append(part.text)
        elif isinstance(part, SteeredPart):
            lines.append(f"[the user added: {part.text}]")
        elif isinstance(part, FilePart):
            lines.append(f"[file {part.name}]")
        elif isinstance(part, ToolPart):
            result = shorten(as_text(part.result), _MAX_RESULT) if part.state == "done" else part.state
            lines.append(f"[{part.name}({shorten(as_text(part.args), _MAX_RESULT)}) → {result}]")
    return "\n".join(lines)
