"""Messages and events on the screen: text as it is, thoughts dimmed, tools in a line each."""

import json
from collections.abc import Mapping
from typing import Any, Final

from holdfast.faces.cli.follow import Event
from holdfast.faces.cli.screen import Screen, one_line

NOTICES: Final = {
    "cancelled": "Stopped. What was said so far is kept.",
    "failed": "Failed: {why}",
    "interrupted": "Interrupted: the server went away. What was said so far is kept.",
}
RECOVERY: Final = {
    "pending": " Its output is still being looked for.",
    "recovered": " Its output was recovered.",
    "none": " No output was recovered.",
}


class Answer:
    """An answer as it comes. On a terminal everything goes there; elsewhere the words alone go to stdout."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._last = ""
        self._at_start = True

    def show(self, event: Event) -> None:
        match event.type, event.data:
            case "text.delta", {"text": str(text)}:
                self._text("text", text, "")
            case "reasoning.delta", {"text": str(text)}:
                if self._screen.out.is_terminal:
                    self._text("reasoning", text, "dim italic")
            case "message.seeded", {"parts": list(parts)}:
                for part in parts:
                    self.part(part)
            case "tool.started", data:
                self.aside(f"• {data.get('name')} {value(data.get('args'))}")
            case "tool.finished", data:
                mark = "✗" if data.get("is_error") else "✓"
                self.aside(f"  {mark} {value(data.get('result'))}")
            case "approval.requested", data:
                self.aside(f"? {data.get('name')} {value(data.get('args'))}: {data.get('reason')}", "yellow")
            case "approval.resolved", data:
                self.aside(f"  answered: {data.get('decision')}")
            case "run.resumed", _:
                self.aside("(taken up again)")
            case _:
                pass

    def part(self, part: Mapping[str, Any]) -> None:
        match part:
            case {"type": "text", "text": str(text)}:
                self._text("text", text, "")
            case {"type": "reasoning", "text": str(text)}:
                if self._screen.out.is_terminal:
                    self._text("reasoning", text, "dim italic")
            case {"type": "tool", "name": name, "state": state}:
                result = "" if part.get("result") is None else f" → {value(part['result'])}"
                self.aside(f"• {name} {value(part.get('args'))} ({state}){result}")
            case {"type": "file", "name": name}:
                self.aside(f"[file: {name}]")
            case _:
                pass

    def end(self) -> None:
        self._break()
        self._last = ""

    def aside(self, text: str, style: str = "dim") -> None:
        self._break()
        self._last = "aside"
        self._screen.note(one_line(text, max(20, self._screen.width - 1)), style)

    def _text(self, kind: str, text: str, style: str) -> None:
        if not text:
            return
        if self._last and self._last != kind:
            self._break()
        self._screen.write(text, style)
        self._last, self._at_start = kind, text.endswith("\n")

    def _break(self) -> None:
        if not self._at_start:
            self._screen.write("\n")
            self._at_start = True


def notice(status: str, error: Mapping[str, Any] | None, recovery: Mapping[str, Any] | None = None) -> str | None:
    if status not in NOTICES:
        return None
    text = NOTICES[status].format(why=(error or {}).get("message") or "no reason was given")
    return text + RECOVERY.get(str((recovery or {}).get("state")), "")


def message(screen: Screen, item: Mapping[str, Any]) -> None:
    who = "you" if item["role"] == "user" else item.get("model") or "assistant"
    screen.line(f"{who}:", "bold")
    answer = Answer(screen)
    for part in item["parts"]:
        answer.part(part)
    answer.end()
    said = notice(item["status"], item.get("error"), item.get("recovery"))
    if said is not None:
        screen.line(f"({said})", "dim")
    screen.line()


def value(given: Any) -> str:
    if given is None:
        return ""
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def event_line(screen: Screen, event: Event) -> None:
    data = " ".join(f"{name}={value(given)}" for name, given in event.data.items())
    start = f"{event.seq:>6}  {event.type:<18} "
    screen.line(start + one_line(data, max(20, screen.width - len(start) - 1) if screen.out.is_terminal else 10**6))
