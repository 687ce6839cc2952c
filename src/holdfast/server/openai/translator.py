"""Reads the journal of a run for another wire format. Pure and incremental: entries in, frames out.

A text delta costs one formatting of bytes: its escaped text is copied from the journal's frame into the client's.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from holdfast.core import events as ev
from holdfast.core.parts import Json, PlanPart, ReasoningPart, SteeredPart, TextPart, ToolPart
from holdfast.server.openai.json_bytes import as_text, escape

_REASONING: Final = b'\nevent: reasoning.delta\ndata: {"text":"'
_PROVIDER: Final = b'","provider":'


class Translator(ABC):
    """Texts are passed to the methods escaped as in JSON."""

    def __init__(self) -> None:
        self._out: list[bytes] = []
        self._usage: ev.Usage | None = None
        self._has_plan = False
        self.ended = False  # Nothing follows
        self.begun = False  # There was output: a failure can no longer have a status
        self.failed: ev.Failure | None = None

    def feed(self, entries: Sequence[ev.Entry]) -> list[bytes]:
        for entry in entries:
            frame = entry.frame
            text = ev.quoted_text(frame)
            if text is not None:
                self._write_text(text)
            elif (text := reasoning_text(frame)) is not None:
                self._write_reasoning(text)
            else:
                self._translate(entry.event())
        out, self._out = self._out, []
        return out

    def _translate(self, event: ev.Event) -> None:
        match event:
            case ev.ReasoningDelta(text, provider):
                self._write_reasoning(escape(text), provider)
            case ev.ToolDelta(call_id, name, args, _) if name is not None or args is not None:
                self._write_call(call_id, name, args)
            case ev.MessageSeeded(_, parts):
                for part in parts:
                    match part:
                        case TextPart(text):
                            if part.begins_step:
                                self._break_text()
                            self._write_text(escape(text))
                        case ReasoningPart(text, provider):
                            if part.begins_step:
                                self._break_text()
                            self._write_reasoning(escape(text), provider)
                        case ToolPart():
                            self._seed_call(part)
                        case PlanPart():
                            self._add_plan()
                        case SteeredPart():
                            self._break_text()
                        case _:
                            pass
            case ev.PlanUpdated():
                self._add_plan()
            case ev.MessageSteered():
                self._break_text()
            case ev.Usage():
                self._usage = ev.add_usage(self._usage, event)
            case ev.RunEnded():
                self._end(event)
            case _:
                pass

    def _add_plan(self) -> None:
        """Only the first plan is a part of its own, between texts; later ones replace it where it is."""
        if not self._has_plan:
            self._has_plan = True
            self._break_text()

    def _seed_call(self, call: ToolPart) -> None:
        """A call that the run began with, because it continues another."""
        self._write_call(call.call_id, call.name, as_text(call.args))

    @abstractmethod
    def _break_text(self) -> None:
        """Text or reasoning that follows is another part, even of the same kind."""

    @abstractmethod
    def _write_text(self, text: bytes) -> None: ...
    @abstractmethod
    def _write_reasoning(self, text: bytes, provider: Json = None) -> None: ...
    @abstractmethod
    def _write_call(self, call_id: str, name: str | None, args: str | None) -> None: ...
    @abstractmethod
    def _end(self, ending: ev.RunEnded) -> None: ...
    @abstractmethod
    def cut(self) -> list[bytes]:
        """The frames of a stream that ends before its run; the translator has ended then."""


def reasoning_text(frame: bytes) -> bytes | None:
    """The escaped text of a journal frame, if it is a reasoning delta without opaque data of the provider. A quote
    inside the text is escaped, so the marker cannot be part of it."""
    return None if _PROVIDER in frame else ev.quoted_text(frame, _REASONING)
