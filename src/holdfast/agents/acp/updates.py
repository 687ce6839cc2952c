"""Translates a program's updates into the events of a run. Pure, and tolerant: an update that it does not understand
changes nothing.

A tool that is announced may already have begun, because its effects are the program's. It is therefore journaled as
started at once, and is shown as *unknown* if the turn ends without its result."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.core import events as ev
from holdfast.core.json_limits import is_too_large
from holdfast.core.parts import Json, PlanEntry
from holdfast.models.usage import is_token_count, known_cost, known_token_count
from holdfast.tools.result_text import MAX_RESULT, as_text, shorten

_MAX_OUTPUT: Final = 200_000  # Characters of a tool's output that are shown while it runs
_MAX_WRITTEN: Final = 5 * MAX_RESULT  # Characters of an output that is written as text to be shortened
_PIECE: Final = 64 * 1024  # Characters of one delta
_MAX_PLAN: Final = 200  # Entries of a plan
_MAX_TITLE: Final = 500
_MAX_PATH: Final = 4000
_MAX_ID: Final = 200
_MAX_KIND: Final = 50
_MAX_TERMINALS: Final = 20  # Whose output is remembered, and that one call can show
_PLAN_STATUS: Final = ("pending", "in_progress", "completed")


@dataclass(slots=True)
class _ReportedCall:
    name: str
    args: dict[str, Json]
    started_at: float
    title: str = ""
    kind: str = ""
    is_complete: bool = True  # Whether name and arguments are all that the program said, so that calls can be compared
    shown: str = ""  # Output so far
    text: str = ""  # Its content as the program last sent it
    terminals: dict[str, int] = field(default_factory=dict)  # Characters of its output that were shown, by id


class TerminalText:
    """The beginning of what a command printed."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0

    def add(self, text: str) -> None:
        kept = text[: max(0, _MAX_OUTPUT - self.length)]
        self._pieces.append(kept)
        self.length += len(kept)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def after(self, position: int) -> str:
        if position + len(self._pieces[-1]) == self.length:
            return self._pieces[-1]
        return self.text[position:]


class UpdateTranslator:
    """One turn's updates. `now` is in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._open: dict[str, _ReportedCall] = {}
        self._closed: set[str] = set()
        self._terminals: dict[str, TerminalText] = {}
        self.answer_start = ""  # Up to 1,000 characters of the answer's text
        self.is_said_at_once = False  # Whether that is one update, after all tools
        self.title: str | None = None
        self.cost: float | None = None  # Of the program's session so far
        self.context: tuple[int, int] | None = None  # Tokens in use, and the most there can be

    @property
    def open_calls(self) -> int:
        """The number of calls that have begun and not ended."""
        return len(self._open)

    def translate(self, update: Mapping[str, Any]) -> list[ev.Event]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                text = _block_text(update.get("content"))
                self.is_said_at_once = not self.answer_start
                if len(self.answer_start) < 1000:
                    self.answer_start = (self.answer_start + text)[:1000]
                return [ev.TextDelta(piece) for piece in _pieces(text)]
            case "agent_thought_chunk":
                return [ev.ReasoningDelta(piece) for piece in _pieces(_block_text(update.get("content")))]
            case "tool_call" | "tool_call_update":
                return self._tool(update)
            case "plan":
                return _plan(update.get("entries"))
            case "session_info_update":
                self.title = _text(update.get("title"), _MAX_TITLE) or self.title
            case "usage_update":
                self._note_cost(update.get("cost"))
                used, size = update.get("used"), update.get("size")
                if is_token_count(used) and is_token_count(size) and size:
                    self.context = (used, size)
            case _:
                pass
        return []

    def add_terminal_output(self, terminal_id: str, text: str) -> list[ev.Event]:
        """What a command printed: it is output of the calls that show its terminal."""
        terminal = self._terminals.pop(terminal_id, None)
        if terminal is None and len(self._terminals) >= _MAX_TERMINALS:
            self._forget_terminal()
        self._terminals[terminal_id] = terminal = terminal or TerminalText()  # the last one printed last
        terminal.add(text)
        return [
            event
            for call_id, call in self._open.items()
            if terminal_id in call.terminals
            for event in self._show_terminal(call_id, call, terminal_id)
        ]

    def _forget_terminal(self) -> None:
        """Forgets the terminal whose last output is the oldest, if possible among those that no open call shows."""
        shown = {terminal_id for call in self._open.values() for terminal_id in call.terminals}
        oldest = next((known for known in self._terminals if known not in shown), next(iter(self._terminals)))
        del self._terminals[oldest]
        for call in self._open.values():
            if oldest in call.terminals:
                call.terminals[oldest] = 0  # what it prints from now on is new

    def _show_terminal(self, call_id: str, call: _ReportedCall, terminal_id: str) -> list[ev.Event]:
        terminal = self._terminals.get(terminal_id)
        if terminal is None:
            return []
        new = terminal.after(call.terminals[terminal_id])
        call.terminals[terminal_id] = terminal.length
        return [ev.ToolDelta(call_id, output_delta=piece) for piece in _pieces(new)]

    def call_asked_about(self, asked: Mapping[str, Any]) -> str:
        """The id of the call that a question is about, empty if it has none. Programs may ask under an id of their own:
        then it is the newest open call of that kind, or else a call that the question announces."""
        call_id, kind = _call_id(asked), _text(asked.get("kind"), _MAX_KIND)
        if call_id in self._open or call_id in self._closed or not kind:
            return call_id
        alike = [known for known, call in self._open.items() if call.kind == kind]
        return alike[-1] if alike else call_id

    def describe(self, call_id: str) -> tuple[str, dict[str, Json]]:
        """The name and the arguments of an open call."""
        call = self._open[call_id]
        return call.name, call.args

    def is_complete(self, call_id: str) -> bool:
        """Whether the description of an open call has all its arguments: without them, two calls look the same."""
        return self._open[call_id].is_complete

    def close(self, call_id: str) -> None:
        """Marks a call as ended: its result is in the journal, so later updates about it are ignored."""
        self._open.pop(call_id, None)
        self._closed.add(call_id)

    def _tool(self, update: Mapping[str, Any]) -> list[ev.Event]:
        self.is_said_at_once = False
        call_id = _call_id(update)
        if not call_id:
            return []
        call = self._open.get(call_id)
        if call is None and call_id in self._closed and update["sessionUpdate"] == "tool_call_update":
            return []  # a new announcement makes it a new call
        events: list[ev.Event] = []
        if call is None:
            call = self._open[call_id] = _ReportedCall("", {}, self._now())
        name, args = self._describe(call, update)
        if (name, args) != (call.name, call.args):
            call.name, call.args = name, args
            events.append(ev.ToolStarted(call_id, name, args))
        events += self._output(call_id, call, update.get("content"))
        for terminal_id in _terminal_ids(update.get("content")):
            if len(call.terminals) >= _MAX_TERMINALS and terminal_id not in call.terminals:
                continue
            call.terminals.setdefault(terminal_id, 0)
            events += self._show_terminal(call_id, call, terminal_id)
        if update.get("status") in ("completed", "failed"):
            events.append(self._finish(call_id, call, update))
        return events

    def _describe(self, call: _ReportedCall, update: Mapping[str, Any]) -> tuple[str, dict[str, Json]]:
        title = _text(update.get("title"))
        call.title = title[:_MAX_TITLE] or call.title
        call.kind = _text(update.get("kind"), _MAX_KIND) or call.kind
        name = call.kind if call.kind not in ("", "other") else "tool"
        args = {**call.args, "title": call.title} if call.title else dict(call.args)
        raw = update.get("rawInput")
        is_cut = len(title) > _MAX_TITLE
        if isinstance(raw, dict):
            args |= raw
            is_cut |= "locations" in raw  # which are not compared
        elif raw is not None:
            args["input"] = raw
        diffs = list(_diffs(update.get("content")))
        is_cut |= any(len(str(diff["path"])) == _MAX_PATH for diff in diffs)
        if len(diffs) == 1:
            args |= diffs[0]
        elif diffs:
            args["edits"] = diffs
        places = [place for item in _items(update.get("locations")) if (place := _location(item))]
        if places:
            args["locations"] = places
        if is_too_large(args, MAX_RESULT) or len(json.dumps(args)) > MAX_RESULT:
            args = {"title": call.title, "note": "The arguments are too long to be shown."}
            is_cut = True
        call.is_complete &= not is_cut
        return name, args

    def _output(self, call_id: str, call: _ReportedCall, content: Any) -> list[ev.Event]:
        """The new part of a call's content; each update contains all of it."""
        if content is None:
            return []
        text = "\n".join(filter(None, (_block_text(item.get("content")) for item in _items(content))))
        new = text.removeprefix(call.text) if call.text and text.startswith(call.text) else text
        call.text = shorten(text, _MAX_OUTPUT)
        room = _MAX_OUTPUT - len(call.shown)
        new = new[: max(0, room)] if text != call.shown else ""
        call.shown += new
        return [ev.ToolDelta(call_id, output_delta=piece) for piece in _pieces(new)]

    def _finish(self, call_id: str, call: _ReportedCall, update: Mapping[str, Any]) -> ev.ToolFinished:
        raw = update.get("rawOutput")
        shown = [self._terminals[terminal].text for terminal in call.terminals if terminal in self._terminals]
        text = "\n".join(filter(None, [*shown, call.text]))
        result: Json = shorten(text, MAX_RESULT) if text else None
        if result is None and raw is not None:
            result = _short_output(raw)
        self.close(call_id)
        duration = max(0, int((self._now() - call.started_at) * 1000))
        return ev.ToolFinished(call_id, result, update.get("status") == "failed", duration)

    def _note_cost(self, cost: Any) -> None:
        amount = cost.get("amount") if isinstance(cost, dict) else None
        known = known_cost(amount)
        if known is not None:
            self.cost = known


def _call_id(update: Mapping[str, Any]) -> str:
    return _text(update.get("toolCallId"), _MAX_ID)


def replayed_text(update: Mapping[str, Any]) -> str | None:
    """The text of a replayed message; None for any other update."""
    if update.get("sessionUpdate") not in ("user_message_chunk", "agent_message_chunk"):
        return None
    return _block_text(update.get("content"))


def turn_usage(
    reported: Any, before: Sequence[int], cost: float | None, *, adds_up: bool
) -> tuple[ev.Usage | None, Sequence[int]]:
    """The usage of a turn, and the numbers that the program has reported by now. `before`: those of its last report.
    `adds_up`: the numbers are of the process so far."""
    names = ("inputTokens", "outputTokens", "cachedReadTokens", "thoughtTokens")
    if isinstance(reported, dict):
        counts: Sequence[int] = [known_token_count(reported.get(name)) or 0 for name in names]
        turn = counts
        if adds_up and all(new >= old for new, old in zip(counts, before, strict=True)):
            turn = [new - old for new, old in zip(counts, before, strict=True)]
    else:
        counts, turn = before, [0, 0, 0, 0]
    if not any(turn) and cost is None:
        return None, counts
    return ev.Usage(turn[0], turn[1], cost, turn[2] or None, turn[3] or None), counts


def _short_output(raw: Json) -> Json:
    if not isinstance(raw, str) and is_too_large(raw, _MAX_WRITTEN):
        return "The output is too large to be shown."
    text = as_text(raw)
    return raw if len(text) <= MAX_RESULT else shorten(text, MAX_RESULT)


def _plan(entries: Any) -> list[ev.Event]:
    found = [
        PlanEntry(
            _text(item.get("content"), 2000),
            item["status"] if item.get("status") in _PLAN_STATUS else "pending",
            _text(item.get("priority"), 20) or None,
        )
        for item in _items(entries)[:_MAX_PLAN]
    ]
    return [ev.PlanUpdated(tuple(found))]


def _diffs(content: Any) -> Iterable[dict[str, Json]]:
    for item in _items(content):
        old = item.get("oldText")
        if item.get("type") == "diff" and isinstance(item.get("newText"), str) and isinstance(old, str | None):
            yield {"path": _text(item.get("path"), _MAX_PATH), "old_text": old or "", "new_text": item["newText"]}


def _terminal_ids(content: Any) -> list[str]:
    named = (_text(item.get("terminalId"), _MAX_ID) for item in _items(content) if item.get("type") == "terminal")
    return [terminal_id for terminal_id in named if terminal_id][:_MAX_TERMINALS]


def _location(item: Mapping[str, Any]) -> str:
    path, line = _text(item.get("path"), _MAX_PATH), item.get("line")
    return f"{path}:{line}" if path and isinstance(line, int) else path


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _block_text(block: Any) -> str:
    """The text of a content block; another kind is named."""
    if not isinstance(block, dict):
        return ""
    kind = block.get("type")
    if kind == "text":
        return _text(block.get("text"))
    if kind == "resource_link":
        return f"[{_text(block.get('name'), 200) or 'file'}: {_text(block.get('uri'), 2000)}]"
    if kind == "resource" and isinstance(block.get("resource"), dict):
        return _text(block["resource"].get("text"))
    return f"[{_text(kind, 50)}]" if kind else ""


def _text(value: Any, most: int | None = None) -> str:
    return value[:most] if isinstance(value, str) else ""


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
