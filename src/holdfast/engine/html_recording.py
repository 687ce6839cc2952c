"""Writes how an answer came about as HTML: a timeline of its run, from the journal. It runs no scripts: when each piece
was written is in its style, so that the page can replay it. Around it: `engine.html_export`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, assert_never

from holdfast.core import events as e
from holdfast.core.events import Entry, Event
from holdfast.core.ids import RunId
from holdfast.core.parts import Json, PlanPart, SteeredPart, TextPart
from holdfast.core.session import Message
from holdfast.engine.html_export import (
    IncludedParts,
    PartWriter,
    write_author,
    write_details,
    write_ending,
    write_messages,
    write_text,
    write_value,
)

Lane = Literal["thinking", "text", "tools", "waiting"]

_LANES: Final[tuple[tuple[Lane, str], ...]] = (
    ("thinking", "Thinking"),
    ("text", "Text"),
    ("tools", "Tools"),
    ("waiting", "Waiting"),
)
_PIECE_MS: Final = 80.0  # Text that was written within this time is one piece
_PAUSE_MS: Final = 1200.0  # A replay shortens longer pauses to this
_REPLAY_MS: Final = 60_000.0  # A longer replay is sped up
_DECISIONS: Final = {"once": "allowed once", "session": "allowed for this chat", "always": "always allowed"}

STYLE: Final = """
.lanes { display: grid; grid-template-columns: auto 1fr; gap: .25rem .75rem; margin: .75rem 0; font-size: .75rem;
  color: var(--muted); } .lanes > div { position: relative; background: var(--soft); border-radius: 4px; }
.lanes i { position: absolute; inset-block: 0; min-width: 3px; border-radius: 4px; background: #0b6e6e; }
.lanes .thinking { background: #8a6fb0; } .lanes .tools { background: #b7791f; }
.lanes .waiting { background: #7c8894; } .lanes .failed { background: #c2413b; }
.figures { margin: 0; font-size: .85rem; color: var(--muted); }
.events { margin: 0; padding: 0; list-style: none; }
.events > li { display: grid; grid-template-columns: 5rem minmax(0, 1fr); gap: .75rem; padding: .3rem 0;
  border-top: 1px solid var(--line); } .events time { padding-top: .15rem; }
.events .notice, .events .written { margin: 0; } .events .rendered > div > :first-child { margin-top: 0; }
.events .written { display: none; }
.replay { position: absolute; opacity: 0; }
.replay + label { display: inline-block; margin-bottom: .75rem; padding: .2rem .9rem; border: 1px solid var(--line);
  border-radius: 999px; font-size: .85rem; cursor: pointer; }
.replay + label::before { content: "▶ "; } .replay:checked + label::before { content: "■ "; }
.replay:focus-visible + label { outline: 2px solid #0b6e6e; outline-offset: 2px; }
.replay:checked ~ .events .written { display: block; } .replay:checked ~ .events .rendered { display: none; }
.replay:checked ~ .events .at { animation: appear .15s both; animation-delay: calc(var(--at) * var(--speed) * 1ms); }
@media (max-width: 40rem) { .events > li { grid-template-columns: 1fr; gap: 0; } }
@media (prefers-reduced-motion: reduce) { .replay, .replay + label { display: none; } }
@media print { .replay, .replay + label { display: none; } }
@keyframes appear { from { opacity: 0; } }
"""


@dataclass(slots=True)
class RecordedItem:
    """A line of the timeline. Times are milliseconds since the run began."""

    lane: Lane | None
    name: str
    start: float
    end: float
    replayed: float  # When it appears in a replay
    html: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    failed: bool = False
    written: float = -_PIECE_MS  # When its last piece began


class RunRecording:
    """Collects the events of a run, in their order. They become pieces of HTML at once, so that a long journal takes
    little more memory than its page. Left out are memories, usage, and everything that providers sent besides."""

    def __init__(self, message: Message, included: IncludedParts, number: int) -> None:
        """`number`: of the recording on its page."""
        self._message = message
        self._included = included
        self._parts = PartWriter(included)
        self._number = number
        self._items: list[RecordedItem] = []
        self._open: dict[str, RecordedItem] = {}
        self._current: RecordedItem | None = None  # The text that is being written
        self._first_step: tuple[int, RecordedItem] | None = None  # It is shown if another one follows
        self._names: dict[str, str] = {}  # Of the tools that are being called
        self._started: int | None = None
        self._now = self._replayed = 0.0
        self._first_token: float | None = None
        self.events = 0
        self.size = 0  # Characters of HTML so far

    def add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.events += 1
            self._advance(entry.at)
            self._record(entry.event())

    @property
    def run_id(self) -> RunId | None:
        """The run whose events belong here; none for a message of the user."""
        return self._message.run_id if self._message.role == "assistant" else None

    def html(self) -> bytes:
        """The timeline; the message itself, if there are no events: it is of the user, was edited, forked or imported,
        or its journal was deleted after its time."""
        if not self.events:
            note = None if self._message.role == "user" else "There is no recording of this answer."
            return write_messages([self._message], self._included, note)
        body = "".join(map(self._line, self._items))
        speed = min(1.0, _REPLAY_MS / self._replayed) if self._replayed else 1.0
        name = f"replay-{self._number}"
        replay = f'<input type="checkbox" class="replay" id="{name}"> <label for="{name}">Replay</label>\n'
        return (
            f'<article class="assistant run" style="--speed: {speed:.4f}">\n{write_author(self._message)}'
            f"{self._figures()}{self._bars()}{replay if self._replayed else ''}"
            f'<ol class="events">\n{body}</ol>\n{write_ending(self._message, self._included)}</article>\n'
        ).encode("utf-8", "replace")

    def _advance(self, at: int | None) -> None:
        """Only some events have a time; those between have that of the last one. Clocks can jump back."""
        if at is None:
            return
        if self._started is None:
            self._started = at
        now = max(self._now, float(at - self._started))
        self._replayed += min(now - self._now, _PAUSE_MS)
        self._now = now

    def _record(self, event: Event) -> None:
        tools = self._included.tools
        match event:
            case e.TextDelta(text):
                self._write("text", "Text", text)
            case e.ReasoningDelta(text):
                self._write("thinking", "Thinking", text if self._included.reasoning else "")
            case e.MessageSeeded(parts=parts):
                html = "".join(map(self._parts.write, parts))
                self._add(None, "Continued from", html)
            case e.MessageSteered(mid, text):
                self._add(None, "You", self._parts.write(SteeredPart(mid, text)))
            case e.StepStarted(0):
                item = RecordedItem(None, "Step 1", self._now, self._now, self._replayed)
                self._first_step = self._first_step or (len(self._items), item)
            case e.StepStarted(index):
                self._show_first_step()
                self._add(None, f"Step {index + 1}")
            case e.StepRetrying(attempt, attempts):
                self._add(None, f"Trying again ({attempt} of {attempts})")
            case e.ToolDelta(call_id, str(name)) if tools:
                self._names[call_id] = name
            case e.ToolStarted(call_id, name, args) if tools:
                self._begin(f"tool {call_id}", "tools", name, args)
            case e.ToolFinished() if tools:
                self._finish_tool(event)
            case e.ApprovalRequested(approval_id, _, name, args) if tools:
                self._begin(f"question {approval_id}", "waiting", f"Approval: {name}", args)
            case e.ApprovalResolved(approval_id, decision) if tools:
                self._end(f"question {approval_id}", _DECISIONS.get(decision, "denied"), failed=decision == "deny")
            case e.InputRequested(request_id, _, server) if tools:
                self._begin(f"question {request_id}", "waiting", f"Question: {server}")
            case e.InputResolved(request_id, action) if tools:
                self._end(f"question {request_id}", action, failed=action != "accept")
            case e.PlanUpdated(entries) if tools:
                self._add(None, "Plan", self._parts.write(PlanPart(entries)))
            case e.RunEnded():
                for key in list(self._open):
                    self._end(key, "not finished", failed=True)
            case (
                e.RunStarted()
                | e.RunResumed()
                | e.ToolDelta()
                | e.ToolStarted()
                | e.ToolFinished()
                | e.ApprovalRequested()
                | e.ApprovalResolved()
                | e.InputRequested()
                | e.InputResolved()
                | e.MemoryRecalled()
                | e.PlanUpdated()
                | e.Usage()
                | e.UnknownEvent()
            ):
                pass
            case _:
                assert_never(event)

    def _show_first_step(self) -> None:
        if self._first_step is not None:
            self._items.insert(*self._first_step)
            self._first_step = None

    def _write(self, lane: Lane, name: str, text: str) -> None:
        if self._first_token is None:
            self._first_token = self._now
        item = self._current
        if item is None or item.lane != lane:
            item = self._current = self._add(lane, name)
        item.end = self._now
        if not text:
            return
        item.text.append(text)
        self.size += len(text)
        if lane == "thinking":  # collapsed: nobody would see it being written
            return
        if self._now - item.written >= _PIECE_MS:
            item.written = self._now
            self._put(item, f'{"</span>" if item.html else ""}<span class="at" style="--at:{self._replayed:.0f}">')
        self._put(item, write_text(text))

    def _add(self, lane: Lane | None, name: str, html: str = "") -> RecordedItem:
        self._current = None
        item = RecordedItem(lane, name, self._now, self._now, self._replayed)
        self._items.append(item)
        self._put(item, html)
        return item

    def _put(self, item: RecordedItem, html: str) -> None:
        if html:
            item.html.append(html)
            self.size += len(html)

    def _begin(self, key: str, lane: Lane, name: str, args: Json = None) -> None:
        self._open[key] = self._add(lane, name, "" if args is None else write_value(args))

    def _end(self, key: str, outcome: str, *, failed: bool) -> RecordedItem | None:
        self._current = None
        item = self._open.pop(key, None)
        if item is not None:
            item.end, item.failed = self._now, failed
            item.name = f"{item.name} ({outcome})"
        return item

    def _finish_tool(self, event: e.ToolFinished) -> None:
        took = None if event.duration_ms is None else duration(event.duration_ms)
        outcome = ", ".join(filter(None, ["failed" if event.is_error else None, took])) or "done"
        key = f"tool {event.call_id}"
        if key not in self._open:  # such as a call with invalid arguments
            self._begin(key, "tools", self._names.get(event.call_id, "Tool"))
            outcome = "not run"
        item = self._end(key, outcome, failed=event.is_error)
        if item is not None:
            if event.result is not None:
                self._put(item, write_value(event.result))
            self._put(item, "".join(map(self._parts.write, event.files)))

    def _line(self, item: RecordedItem) -> str:
        at = f' class="at" style="--at:{item.replayed:.0f}"'
        html = "".join(item.html)
        match item.lane:
            case "text" if item.text:
                content = (
                    f'<div class="rendered">{self._rendered(item)}</div>'
                    f'<p class="written plain" dir="auto">{html}</span></p>'
                )
            case "thinking" if item.text:
                content = write_details(item.name, self._rendered(item))
            case "text" | "thinking":
                content = f'<p class="notice">{item.name}</p>'
            case "tools" | "waiting":
                content = write_details(item.name, html)
            case None:
                content = f'<p class="notice">{write_text(item.name)}</p>{html}'
            case _:
                assert_never(item.lane)
        time = "" if self._started is None else duration(item.start)
        return f"<li{at}><time>{time}</time><div>{content}</div></li>\n"

    def _rendered(self, item: RecordedItem) -> str:
        return self._parts.write(TextPart("".join(item.text)))

    def _figures(self) -> str:
        if self._started is None:
            return f'<p class="figures">{self.events} events, without times</p>\n'
        first = "" if self._first_token is None else f" · First token after {duration(self._first_token)}"
        return f'<p class="figures">Took {duration(self._now)}{first} · {self.events} events</p>\n'

    def _bars(self) -> str:
        if not self._now:
            return ""
        rows = []
        for lane, name in _LANES:
            bars = "".join(self._bar(item) for item in self._items if item.lane == lane)
            if bars:
                rows.append(f"<span>{name}</span><div>{bars}</div>\n")
        return f'<div class="lanes" aria-hidden="true">\n{"".join(rows)}</div>\n'

    def _bar(self, item: RecordedItem) -> str:
        left, width = (100 * ms / self._now for ms in (item.start, item.end - item.start))
        kind = f"{item.lane} failed" if item.failed else item.lane
        place = f"left:min({left:.2f}%,100% - 3px);width:{width:.2f}%"
        return f'<i class="{kind}" title="{write_text(item.name)}" style="{place}"></i>'


def duration(ms: float) -> str:
    """`340 ms`, `2.4 s`, `3 min 12 s`."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
