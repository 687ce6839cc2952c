"""Translates the gateway's events into those of a run. Pure, and tolerant: an event that it does not understand changes
nothing.

The gateway names a tool and a preview of its arguments, but no call. So calls are numbered in the order in which they
are announced, and the end of a tool is that of the first open call with its name."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core import events as ev
from holdfast.core.parts import Json
from holdfast.models.usage import known_token_count
from holdfast.tools.result_text import shorten

_MAX_NAME: Final = 200
_MAX_TITLE: Final = 500
_MAX_COMMAND: Final = 20_000  # Characters of a command that a person is asked about
_MAX_PREVIEW: Final = 500  # Characters of an answer that the gateway repeats as `reasoning.available`
_PIECE: Final = 64 * 1024  # Characters of one delta
_MASK: Final = ("***", "...", "…")  # What the gateway puts in the place of secrets
_CHOICES: Final[Mapping[str, tuple[str, ev.Decision]]] = {
    "once": ("Allow once", "once"),
    "session": ("Allow in this answer", "session"),  # the gateway forgets it with the run
    "always": ("Always allow", "always"),
    "deny": ("Deny", "deny"),
}


@dataclass(slots=True)
class _OpenCall:
    name: str
    args: dict[str, Json]
    started_at: float


@dataclass(frozen=True, slots=True)
class GatewayQuestion:
    """What a person is asked, about an announced call."""

    call_id: str
    name: str
    args: dict[str, Json]
    options: list[dict[str, Json]]
    is_complete: bool  # Whether the arguments are all there, so that calls can be compared


class GatewayTranslator:
    """One run's events. `now` is in seconds."""

    def __init__(self, run_id: str, now: Callable[[], float]) -> None:
        self._run_id = run_id
        self._now = now
        self._open: dict[str, _OpenCall] = {}
        self._by_name: defaultdict[str, dict[str, None]] = defaultdict(dict)  # Ids of the open calls, oldest first
        self._announced = 0
        self._step = ""  # The beginning of the text since the last tool
        self.has_text = False

    @property
    def open_calls(self) -> int:
        """The number of tools that have begun and not ended."""
        return len(self._open)

    def translate(self, event: Mapping[str, Any]) -> list[ev.Event]:
        match event.get("event"):
            case "message.delta":
                text = _text(event.get("delta"))
                self._step += text[: max(0, 2 * _MAX_PREVIEW - len(self._step))]
                self.has_text |= bool(text.strip())
                return [ev.TextDelta(piece) for piece in pieces(text)]
            case "reasoning.available":
                text = _text(event.get("text"))
                said = text.strip() and self._step.strip().startswith(text.strip())
                return [] if said else [ev.ReasoningDelta(piece) for piece in pieces(text)]
            case "tool.started":
                return [self._start(_text(event.get("tool")) or "tool", _text(event.get("preview")))]
            case "tool.completed":
                return self._finish(event)
            case _:
                return []

    def _start(self, name: str, title: str) -> ev.ToolStarted:
        self._step = ""
        self._announced += 1
        call_id = f"{self._run_id}-{self._announced}"
        args: dict[str, Json] = {"title": title[:_MAX_TITLE]} if title else {}
        call = self._open[call_id] = _OpenCall(name[:_MAX_NAME], args, self._now())
        self._by_name[call.name][call_id] = None
        return ev.ToolStarted(call_id, call.name, call.args)

    def _finish(self, event: Mapping[str, Any]) -> list[ev.Event]:
        name = _text(event.get("tool"))[:_MAX_NAME]
        call_id = next(iter(self._by_name.get(name, ())), None)
        if call_id is None:
            return []
        call = self._open[call_id]
        self.close(call_id)
        duration = max(0, int((self._now() - call.started_at) * 1000))
        return [ev.ToolFinished(call_id, None, event.get("error") is True, duration)]

    def ask(self, event: Mapping[str, Any]) -> tuple[list[ev.Event], GatewayQuestion]:
        """The question of an `approval.request`, and the events before it: the newest open call is the one that waits,
        with the command that the gateway names."""
        before: list[ev.Event] = []
        if not self._open:
            before.append(self._start("tool", ""))
        call_id, call = next(reversed(self._open.items()))
        command = _text(event.get("command"))
        args = {**call.args, "command": shorten(command, _MAX_COMMAND)}
        if description := _text(event.get("description"))[:_MAX_TITLE]:
            args["description"] = description
        call.args = args
        is_complete = 0 < len(command) <= _MAX_COMMAND and not any(mask in command for mask in _MASK)
        offered = event.get("choices")
        names = [name for name in _CHOICES if isinstance(offered, list) and name in offered]
        if "deny" not in names:
            names = ["once", "deny"]
        options: list[dict[str, Json]] = [
            {"id": name, "name": shown, "decision": decision} for name in names for shown, decision in [_CHOICES[name]]
        ]
        return before, GatewayQuestion(call_id, call.name, args, options, is_complete)

    def close(self, call_id: str) -> None:
        """The journal has its end: what the gateway still says about it changes nothing."""
        call = self._open.pop(call_id, None)
        if call is not None:
            del self._by_name[call.name][call_id]
            if not self._by_name[call.name]:
                del self._by_name[call.name]


def usage_of(event: Mapping[str, Any]) -> ev.Usage | None:
    usage = event.get("usage")
    found = usage if isinstance(usage, dict) else {}
    counts = [known_token_count(found.get(name)) or 0 for name in ("input_tokens", "output_tokens")]
    return ev.Usage(*counts) if any(counts) else None


def pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
