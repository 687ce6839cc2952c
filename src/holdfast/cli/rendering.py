"""Prints messages and events: text as it is, reasoning dimmed, one line per tool call."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.cli.run_follower import FollowedEvent
from holdfast.cli.terminal import Terminal, escape_invisible, one_line
from holdfast.core.user_questions import is_user_question, options

NOTICES: Final = {
    "cancelled": "Stopped. The partial answer is saved.",
    "failed": "Failed: {reason}",
    "interrupted": "Interrupted by a server restart. The partial answer is saved.",
}
RECOVERY: Final = {
    "pending": " Its output is still being recovered.",
    "recovered": " Its output was recovered.",
    "none": " No output was recovered.",
}
_DECISIONS: Final = {
    "once": "Allowed",
    "session": "Allowed for this chat",
    "always": "Always allowed",
    "deny": "Denied",
}
_MAX_APPROVAL: Final = 20_000  # A call that needs approval is shown whole


class AnswerPrinter:
    """Prints an answer as it arrives. If stdout is not a terminal, only the text goes there."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._last = ""
        self._at_line_start = True

    def print_event(self, event: FollowedEvent) -> None:
        match event.type, event.data:
            case "text.delta", {"text": str(text)}:
                self._print_text(text)
            case "reasoning.delta", {"text": str(text)}:
                self._print_reasoning(text)
            case "message.seeded", {"parts": list(parts)}:
                for part in parts:
                    self.print_part(part)
            case "tool.started", data:
                self._print_note(f"• {data.get('name')} {format_value(data.get('args'))}")
            case "tool.finished", data:
                mark = "✗" if data.get("is_error") else "✓"
                self._print_note(f"  {mark} {format_value(data.get('result'))}")
            case "approval.requested", {"approval_id": str(aid), "args": dict(args)} if is_user_question(aid):
                self._print_note(f"? {args.get('question')}", "yellow", _MAX_APPROVAL)
                for number, option in enumerate(options(args), 1):
                    self._print_note(f"  {number}. {option}", "yellow")
            case "approval.requested", data:
                call = f"{data.get('name')} {format_value(data.get('args'))}"
                self._print_note(f"? {call}: {data.get('reason')}", "yellow", _MAX_APPROVAL)
            case "approval.resolved", data:
                self._print_note(f"  {_DECISIONS.get(str(data.get('decision')), 'Answered')}")
            case "input.requested", data:
                self._print_note(f"? {data.get('server')}: {data.get('message')} (answer in the web app)", "yellow")
            case "input.resolved", data:
                self._print_note(f"  answer: {data.get('action')}")
            case "plan.updated", {"entries": list(entries)}:
                self._print_note(f"☰ {plan_summary(entries)}")
            case "message.steered", {"text": str(text)}:
                self._print_note(f"> {text}")
            case "run.resumed", _:
                self._print_note("(continued)")
            case _:
                pass

    def print_part(self, part: Mapping[str, Any]) -> None:
        match part:
            case {"type": "text", "text": str(text)}:
                self._print_text(text)
            case {"type": "reasoning", "text": str(text)}:
                self._print_reasoning(text)
            case {"type": "tool", "name": name, "state": state}:
                result = "" if part.get("result") is None else f" → {format_value(part['result'])}"
                self._print_note(f"• {name} {format_value(part.get('args'))} ({state}){result}")
            case {"type": "file", "name": name}:
                self._print_note(f"[file: {name}]")
            case {"type": "plan", "entries": list(entries)}:
                self._print_note(f"☰ {plan_summary(entries)}")
            case {"type": "steered", "text": str(text)}:
                self._print_note(f"> {text}")
            case _:
                pass

    def finish(self) -> None:
        self._end_line()
        self._last = ""

    def _print_text(self, text: str, kind: str = "text", style: str = "") -> None:
        if not text:
            return
        if self._last and self._last != kind:
            self._end_line()
        self._terminal.write(text, style)
        self._last, self._at_line_start = kind, text.endswith("\n")

    def _print_reasoning(self, text: str) -> None:
        if self._terminal.out.is_terminal:
            self._print_text(text, "reasoning", "dim italic")

    def _print_note(self, text: str, style: str = "dim", max_length: int | None = None) -> None:
        self._end_line()
        self._last = "note"
        width = max_length or max(20, self._terminal.width - 1)
        self._terminal.note(one_line(escape_invisible(text), width), style)

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._terminal.write("\n")
            self._at_line_start = True


def plan_summary(entries: Sequence[Mapping[str, Any]]) -> str:
    """How far a plan is, and its entry in progress."""
    done = sum(entry.get("status") == "completed" for entry in entries)
    current = next((entry.get("content") for entry in entries if entry.get("status") == "in_progress"), "")
    return f"plan: {done} of {len(entries)} done" + (f", {current}" if current else "")


def status_notice(
    status: str, error: Mapping[str, Any] | None, recovery: Mapping[str, Any] | None = None
) -> str | None:
    if status not in NOTICES:
        return None
    text = NOTICES[status].format(reason=(error or {}).get("message") or "no reason given")
    return text + RECOVERY.get(str((recovery or {}).get("state")), "")


def print_message(terminal: Terminal, item: Mapping[str, Any]) -> None:
    author = "you" if item["role"] == "user" else item.get("model") or "assistant"
    terminal.line(f"{author}:", "bold")
    answer = AnswerPrinter(terminal)
    for part in item["parts"]:
        answer.print_part(part)
    answer.finish()
    notice = status_notice(item["status"], item.get("error"), item.get("recovery"))
    if notice is not None:
        terminal.line(f"({notice})", "dim")
    terminal.line()


def format_value(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def print_event(terminal: Terminal, event: FollowedEvent) -> None:
    data = " ".join(f"{name}={format_value(value)}" for name, value in event.data.items())
    start = f"{event.seq:>6}  {event.type:<18} "
    width = max(20, terminal.width - len(start) - 1) if terminal.out.is_terminal else 10**6
    terminal.line(start + one_line(data, width))
