"""Translates the journal of a run into the events of a streamed response. Numbers and ids are derived from the journal
alone, so every replay from any number gives the same events."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Literal

from holdfast.core import events as ev
from holdfast.core.ids import ApprovalId, RunId
from holdfast.core.parts import Json, ToolPart
from holdfast.server.openai import response_object
from holdfast.server.openai.client_tools import ClientTools
from holdfast.server.openai.json_bytes import as_text, dump, escape
from holdfast.server.openai.response_object import ItemKind, OutputItem, ResponseStatus
from holdfast.server.openai.translator import Translator

_CUT_OFF: Final = "The server closed this stream early. Resume it with starting_after set to the last sequence_number."
_FINAL_EVENTS: Final = {"completed": "response.completed", "failed": "response.failed"}
"""OpenAI has no event for a cancelled response: `response.incomplete` is the nearest."""
_DELTAS: Final = {
    "msg": (b"response.output_text.delta", b'"content_index":0,"logprobs":[],'),
    "rs": (b"response.reasoning_summary_text.delta", b'"summary_index":0,'),
    "fc": (b"response.function_call_arguments.delta", b""),
    "ctc": (b"response.custom_tool_call_input.delta", b""),
    "mcp": (b"response.mcp_call_arguments.delta", b""),
}


_INDEX: Final = {"msg": b'"content_index":0', "rs": b'"summary_index":0'}
_PART: Final = {"msg": "response.content_part", "rs": "response.reasoning_summary_part"}


class _StreamedItem(OutputItem):
    __slots__ = ("delta_frame", "position")

    def __init__(self, kind: ItemKind, run: RunId, index: int, call: ToolPart | None, tools: ClientTools) -> None:
        super().__init__(kind, run, index, call, tools)
        self.position = b'"item_id":"%s","output_index":%d' % (self.id.encode(), index)
        name, fields = _DELTAS[kind]
        head = b'event: %s\ndata: {"type":"%s",%s,%s"sequence_number":' % (name, name, self.position, fields)
        self.delta_frame = head.replace(b"%", b"%%") + b'%d,"delta":"%b"}\n\n'
        """To be filled in with a number and an escaped text."""


class ResponseEvents(Translator):
    """`constant`: the fields of the response that never change. `server_tools`: tool calls are calls of the server's
    tools. Events up to the number `after` are not returned.

    `pauses`: the response is complete when its run waits for an approval. `resumes`: it begins with the answer to this
    approval. What only such a response has takes no number, so that a replay numbers all events the same."""

    def __init__(
        self,
        run: RunId,
        constant: bytes,
        *,
        queued: bool,
        server_tools: bool,
        after: int = -1,
        tools: ClientTools = MappingProxyType({}),
        pauses: bool = False,
        resumes: ApprovalId | None = None,
    ) -> None:
        super().__init__()
        self._pauses = pauses
        self._resumes = resumes
        self._opening: list[bytes] = []
        self._question: ev.ApprovalRequested | None = None
        self._tools = tools
        self._run = run
        self._constant = constant
        self._first_status = "queued" if queued else "in_progress"
        self._server_tools = server_tools
        self._after = after
        self._items: list[_StreamedItem] = []
        self._open_text: _StreamedItem | None = None  # The message or reasoning that is being written
        self._calls: dict[str, _StreamedItem] = {}
        self._step_start = 0  # The index of the first item of the current step
        self.number = 0  # The number of the next event

    def open(self) -> list[bytes]:
        """The event that precedes the journal."""
        self._response_event("response.created", ResponseStatus(self._first_status))
        out, self._out = self._out, []
        return self._unseen(out, 0)

    def feed(self, entries: Sequence[ev.Entry]) -> list[bytes]:
        before = self.number
        frames = self._unseen(super().feed(entries), before)
        if self._question is not None and self._pauses and self._resumes is None:
            frames += self._pause(self._question)
        return frames

    def _pause(self, question: ev.ApprovalRequested) -> list[bytes]:
        self.begun = self.ended = True
        item, last = response_object.approval_item(question), self.number - 1
        fields = b'"output_index":%d,"item":%s' % (len(self._items), item)
        status = ResponseStatus("completed", usage=self._usage)
        whole = response_object.render(self._constant, status, [*(item.render() for item in self._items), item])
        return [
            _frame("response.output_item.added", last, fields),
            _frame("response.output_item.done", last, fields),
            _frame("response.completed", last, b'"response":%s' % whole),
        ]

    def _resume(self) -> None:
        """Begin with the output so far: clients find later items by their index."""
        self._resumes = None
        self._after = self.number - 1
        status, items = ResponseStatus("in_progress"), [item.render() for item in self._items]
        whole = b'"response":%s' % response_object.render(self._constant, status, items)
        self._opening = [_frame(f"response.{name}", self._after, whole) for name in ("created", "in_progress")]

    def cut(self) -> list[bytes]:
        """The stream ends before the run does. The error has the last number again, so that it can be resumed after."""
        self.ended = True
        error = {"type": "error", "code": "server_error", "message": _CUT_OFF, "param": None}
        return [b"event: error\ndata: %s\n\n" % dump({**error, "sequence_number": self.number - 1})]

    def _unseen(self, out: list[bytes], first: int) -> list[bytes]:
        """The frames, of which the first has this number, without those that the client has."""
        if self._resumes is not None:
            return []
        opening, self._opening = self._opening, []
        return opening + (out if first > self._after else out[self._after + 1 - first :])

    def _translate(self, event: ev.Event) -> None:
        match event:
            case ev.RunStarted():
                self._response_event("response.in_progress", ResponseStatus("in_progress"))
            case ev.ToolStarted(call_id, name, args):
                self._complete_arguments(call_id, name, args, "running")
            case ev.ApprovalRequested(_, call_id, name, args):
                self._complete_arguments(call_id, name, args, "waiting")
                self._question = event
            case ev.ApprovalResolved(approval_id, decision, reason):
                question, self._question = self._question, None
                if approval_id == self._resumes:
                    self._resume()
                if question is not None and decision == "deny":
                    self._finish_call(question.call_id, reason, is_error=True)
            case ev.ToolFinished(call_id, result, is_error):
                self._finish_call(call_id, result, is_error=is_error)
            case ev.MemoryRecalled():
                self._close_text()
            case ev.StepStarted():
                self._begin_step()
            case _:
                super()._translate(event)

    def _seed_call(self, call: ToolPart) -> None:
        super()._seed_call(call)
        if call.state in ("done", "denied"):
            self._finish_call(call.call_id, call.result, is_error=call.is_error or call.state == "denied")

    def _begin_step(self) -> None:
        """As in the fold: an answer after complete calls begins a part, an answer that was cut off is continued."""
        if any(item.call is not None and item.call.args != "" for item in self._items[self._step_start :]):
            self._step_start = len(self._items)
            self._close_text()

    def _break_text(self) -> None:
        self._close_text()

    # ---- messages and reasoning ----

    def _write_text(self, text: bytes) -> None:
        if text:
            self._append(self._text_item("msg"), text)

    def _write_reasoning(self, text: bytes, provider: Json = None) -> None:
        """Opaque data of the provider ends a block of reasoning: more reasoning is another block."""
        if text or provider is not None:
            item = self._text_item("rs")
            if text:
                self._append(item, text)
        if provider is not None:
            self._close_text()

    def _text_item(self, kind: Literal["msg", "rs"]) -> _StreamedItem:
        item = self._open_text
        if item is not None and item.kind == kind:
            return item
        self._close_text()
        self._close_calls()
        item = self._open_text = self._add_item(kind)
        self._event(f"{_PART[kind]}.added", b'%s,%s,"part":%s', item, _INDEX[kind], item.content_part())
        return item

    def _append(self, item: _StreamedItem, text: bytes) -> None:
        item.pieces.append(text)
        self._out.append(item.delta_frame % (self.number, text))
        self.number += 1

    def _close_text(self, *, complete: bool = True) -> None:
        item, self._open_text = self._open_text, None
        if item is None:
            return
        item.complete = complete
        name, fields = _DELTAS[item.kind]
        self._event(name.decode().replace(".delta", ".done"), b'%s,%s"text":"%s"', item, fields, item.text)
        self._event(f"{_PART[item.kind]}.done", b'%s,%s,"part":%s', item, _INDEX[item.kind], item.content_part())
        self._item_done(item)

    # ---- tool calls ----

    def _write_call(self, call_id: str, name: str | None, args: str | None) -> None:
        item, call = self._call_item(call_id, name or "")
        if name is not None and name != call.name:
            item.call = ToolPart(call_id, name, "", call.state)
        if args and call.args == "":
            if item.kind == "ctc":  # its input is inside the arguments, and is sent when they are complete
                item.pieces.append(escape(args))
            else:
                self._append(item, escape(args))

    def _call_item(self, call_id: str, name: str) -> tuple[_StreamedItem, ToolPart]:
        item = self._calls.get(call_id)
        if item is not None and item.call is not None and item.call.state != "done":
            return item, item.call
        self._close_text()
        call = ToolPart(call_id, name, "", "pending")
        item = self._calls[call_id] = self._add_item(
            response_object.call_kind(name, self._tools, server_tools=self._server_tools), call
        )
        if self._server_tools:
            self._event("response.mcp_call.in_progress", b"%s", item)
        return item, call

    def _complete_arguments(self, call_id: str, name: str, args: Json, state: Literal["running", "waiting"]) -> None:
        """Arguments that were streamed while the model wrote them are not streamed again."""
        item, call = self._call_item(call_id, name)
        arguments = escape(as_text(args))
        if not item.pieces:
            self._append(item, arguments)
        item.call = ToolPart(call_id, name, args, state)
        if call.args == "":
            self._event("response.mcp_call_arguments.done", b'%s,"arguments":"%s"', item, arguments)

    def _finish_call(self, call_id: str, result: Json, *, is_error: bool) -> None:
        item = self._calls.get(call_id)
        if item is None or item.call is None:
            return
        call = item.call
        args = call.args if call.args != "" else ev.unquoted([item.text])
        item.call = ToolPart(call_id, call.name, args, "done", result, is_error)
        item.complete = True
        if self._server_tools:
            self._event("response.mcp_call.failed" if is_error else "response.mcp_call.completed", b"%s", item)
        self._item_done(item)

    def _close_calls(self) -> None:
        """Calls of the client's functions end with their arguments; calls of the server's tools with their results."""
        if self._server_tools or not self._calls:
            return
        for item in self._calls.values():
            if not item.complete:
                item.complete = True
                self._arguments_done(item)
                self._item_done(item)

    def _arguments_done(self, item: _StreamedItem) -> None:
        if item.kind == "ctc":
            text = item.custom_input()
            self._out.append(item.delta_frame % (self.number, text))
            self.number += 1
            self._event("response.custom_tool_call_input.done", b'%s,"input":"%s"', item, text)
        else:
            names = dump(item.name_fields())[1:-1]
            fields = b'%s,%s,"arguments":"%s"'
            self._event("response.function_call_arguments.done", fields, item, names, item.text)

    # ---- the end ----

    def _end(self, ending: ev.RunEnded) -> None:
        self._close_text(complete=ending.status == "complete")
        self._close_calls()
        self.ended = True
        self._question = None
        if self._resumes is not None:  # the run ended before the answer was journaled
            self._resume()
        self.failed = ending.error if ending.status == "failed" else None
        for item in self._items:
            if item.call is not None and item.call.state != "done":
                item.call = replace(item.call, state="unknown")
        status = response_object.status_of_ended(ending, self._usage)
        items = [item.render() for item in self._items]
        self._response_event(_FINAL_EVENTS.get(status.status, "response.incomplete"), status, items)

    # ---- writing events ----

    def _add_item(self, kind: ItemKind, call: ToolPart | None = None) -> _StreamedItem:
        self.begun = True
        item = _StreamedItem(kind, self._run, len(self._items), call, self._tools)
        self._items.append(item)
        fields = b'"output_index":%d,"item":%s'
        self._write("response.output_item.added", fields % (item.index, item.render_new()))
        return item

    def _item_done(self, item: _StreamedItem) -> None:
        self._event("response.output_item.done", b'%s,"item":%s', item, item.render())

    def _event(self, name: str, fields: bytes, item: _StreamedItem, *values: bytes) -> None:
        """`fields`: a format for the position of the item and the values."""
        self._write(name, fields % (item.position, *values))

    def _response_event(self, name: str, status: ResponseStatus, items: Sequence[bytes] = ()) -> None:
        self._write(name, b'"response":%s' % response_object.render(self._constant, status, items))

    def _write(self, name: str, fields: bytes) -> None:
        self._out.append(_frame(name, self.number, fields))
        self.number += 1


def _frame(name: str, number: int, fields: bytes) -> bytes:
    frame = b'event: %s\ndata: {"type":"%s","sequence_number":%d,%s}\n\n'
    return frame % (name.encode(), name.encode(), number, fields)
