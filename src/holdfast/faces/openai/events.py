"""A run's journal as the events of a response. Pure and incremental: entries in, frames out. Numbers and ids come from
the journal alone, so every replay, from wherever and by whomever, gives the same events.

A delta costs one piece of bytes: its text goes from the journal's frame into the client's as it is.
"""

from collections.abc import Sequence
from typing import Final, Literal

from holdfast.core import events as ev
from holdfast.core.ids import RunId
from holdfast.core.parts import Json, Part, Reasoning, Text, Tool
from holdfast.faces.openai import frames, output
from holdfast.faces.openai.growing import Item, Kind, quoted_thought

_CUT: Final = "The server let go of this stream. Resume it after the last number that you have."
_ENDINGS: Final = {"completed": "response.completed", "failed": "response.failed"}
"""There is no event for a cancelled response; an incomplete one that says so is the nearest."""


class ResponseEvents:
    """`base`: the fields of the response that never change. `own_tools`: calls are of tools of ours. What comes up to
    the number `after` is not given out again."""

    def __init__(self, run: RunId, base: bytes, *, queued: bool, own_tools: bool, after: int = -1) -> None:
        self._run = run
        self._base = base
        self._opening = "queued" if queued else "in_progress"
        self._own = own_tools
        self._after = after
        self._items: list[Item] = []
        self._last: Item | None = None  # the words that are being said, if any
        self._calls: dict[str, Item] = {}
        self._usage: ev.Usage | None = None
        self._out: list[bytes] = []
        self.number = 0
        """Of the next event."""
        self.ended = False

    def open(self) -> list[bytes]:
        """What comes before anything is in the journal."""
        self._respond("response.created", frames.Outcome(self._opening))
        return self._taken(0)

    def feed(self, entries: Sequence[ev.Entry]) -> list[bytes]:
        before = self.number
        for entry in entries:
            frame = entry.frame
            quoted = ev.quoted_text(frame)
            if quoted is not None:
                item = self._last
                if item is not None and item.kind == "msg":  # `_grow`, written out: this is done with every token
                    item.pieces.append(quoted)
                    self._out.append(item.delta % (self.number, quoted))
                    self.number += 1
                else:
                    self._say("msg", quoted)
            elif (quoted := quoted_thought(frame)) is not None:
                self._say("rs", quoted)
            else:
                self._take(entry.event())
        return self._taken(before)

    def cut(self) -> list[bytes]:
        """The stream ends without an end: under the last number, so that it can be gone on from."""
        self.ended = True
        error = {"type": "error", "code": "server_error", "message": _CUT, "param": None}
        return [b"event: error\ndata: %s\n\n" % frames.dump({**error, "sequence_number": self.number - 1})]

    def _taken(self, before: int) -> list[bytes]:
        """What was written since, which began at number `before`."""
        out, self._out = self._out, []
        return out if before > self._after else out[self._after + 1 - before :]

    # ---- what the journal says ----

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.RunStarted():
                self._respond("response.in_progress", frames.Outcome("in_progress"))
            case ev.ReasoningDelta(text, provider):
                self._think(text, provider)
            case ev.ToolDelta(call_id, name, args, _) if name is not None or args is not None:
                self._write_call(call_id, name, args)
            case ev.ToolStarted(call_id, name, args):
                self._put_call(call_id, name, args, "running")
            case ev.ApprovalRequested(_, call_id, name, args):
                self._put_call(call_id, name, args, "waiting")
            case ev.ToolFinished(call_id, result, is_error):
                self._finish_call(call_id, result, is_error=is_error)
            case ev.MessageSeeded(_, parts):
                for part in parts:
                    self._seed(part)
            case ev.MemoryRecalled():
                self._close_last()
            case ev.Usage():
                self._usage = _sum(self._usage, event)
            case ev.RunEnded():
                self._end(event)
            case _:
                pass

    def _seed(self, part: Part) -> None:
        match part:
            case Text(text):
                self._say("msg", frames.quote(text))
            case Reasoning(text, provider):
                self._think(text, provider)
            case Tool(call_id, name, args, state, result, is_error):
                self._write_call(call_id, name, frames.arguments(args))
                if state in ("done", "denied"):
                    self._finish_call(call_id, result, is_error=is_error or state == "denied")
            case _:
                pass

    # ---- words ----

    def _say(self, kind: Literal["msg", "rs"], quoted: bytes) -> None:
        if quoted:
            self._grow(self._speaking(kind), quoted)

    def _think(self, text: str, provider: Json) -> None:
        """Opaque data closes a thought: the next is another one."""
        if text or provider is not None:
            item = self._speaking("rs")
            if text:
                self._grow(item, frames.quote(text))
        if provider is not None:
            self._close_last()

    def _speaking(self, kind: Literal["msg", "rs"]) -> Item:
        last = self._last
        if last is not None and last.kind == kind:
            return last
        self._close_last()
        self._close_calls()
        item = self._last = self._add(kind)
        if kind == "msg":
            added = b'{"id":"%s","type":"message","status":"in_progress","role":"assistant","content":[]}'
            self._added(item, added % item.id.encode())
            self._event("response.content_part.added", b'%s,"content_index":0,"part":%s', item, frames.text_part(b""))
        else:
            added = b'{"id":"%s","type":"reasoning","status":"in_progress","summary":[]}'
            self._added(item, added % item.id.encode())
            part = frames.summary_part(b"")
            self._event("response.reasoning_summary_part.added", b'%s,"summary_index":0,"part":%s', item, part)
        return item

    def _grow(self, item: Item, quoted: bytes) -> None:
        item.pieces.append(quoted)
        self._out.append(item.delta % (self.number, quoted))
        self.number += 1

    def _close_last(self, status: str = "completed") -> None:
        item, self._last = self._last, None
        if item is None:
            return
        item.closed = status == "completed"
        if item.kind == "msg":
            text, part = item.text, frames.text_part(item.text)
            self._event("response.output_text.done", b'%s,"content_index":0,"logprobs":[],"text":"%s"', item, text)
            self._event("response.content_part.done", b'%s,"content_index":0,"part":%s', item, part)
        else:
            text, part = item.text, frames.summary_part(item.text)
            self._event("response.reasoning_summary_text.done", b'%s,"summary_index":0,"text":"%s"', item, text)
            self._event("response.reasoning_summary_part.done", b'%s,"summary_index":0,"part":%s', item, part)
        self._event("response.output_item.done", b'%s,"item":%s', item, self._rendered(item))

    # ---- calls ----

    def _write_call(self, call_id: str, name: str | None, args: str | None) -> None:
        item = self._open_call(call_id, name or "")
        call = item.call
        assert call is not None
        if name is not None and name != call.name:
            item.call = Tool(call_id, name, "", call.state)
        if args and call.args == "":
            self._grow(item, frames.quote(args))

    def _open_call(self, call_id: str, name: str) -> Item:
        item = self._calls.get(call_id)
        if item is not None and item.call is not None and item.call.state != "done":
            return item
        self._close_last()
        item = self._calls[call_id] = self._add("mcp" if self._own else "fc", Tool(call_id, name, "", "pending"))
        self._added(item, self._rendered(item, "in_progress"))
        if self._own:
            self._event("response.mcp_call.in_progress", b"%s", item)
        return item

    def _put_call(self, call_id: str, name: str, args: Json, state: Literal["running", "waiting"]) -> None:
        """The arguments are known; what of them was written while the model wrote them is not repeated."""
        item = self._open_call(call_id, name)
        call = item.call
        assert call is not None
        if not item.pieces:
            self._grow(item, frames.quote(frames.arguments(args)))
        item.call = Tool(call_id, name, args, state)
        if call.args == "":
            whole = frames.quote(frames.arguments(args))
            self._event("response.mcp_call_arguments.done", b'%s,"arguments":"%s"', item, whole)

    def _finish_call(self, call_id: str, result: Json, *, is_error: bool) -> None:
        item = self._calls.get(call_id)
        if item is None or item.call is None:
            return
        call = item.call
        args = call.args if call.args != "" else ev.unquoted([item.text])
        item.call = Tool(call_id, call.name, args, "done", result, is_error)
        item.closed = True
        if self._own:
            self._event("response.mcp_call.failed" if is_error else "response.mcp_call.completed", b"%s", item)
        self._event("response.output_item.done", b'%s,"item":%s', item, self._rendered(item))

    def _close_calls(self) -> None:
        """Of the client's: ours end when they are answered."""
        if self._own or not self._calls:
            return
        for item in self._calls.values():
            if not item.closed:
                item.closed = True
                assert item.call is not None
                name = frames.dump(item.call.name)
                more = (item, name, item.text)
                self._event("response.function_call_arguments.done", b'%s,"name":%s,"arguments":"%s"', *more)
                self._event("response.output_item.done", b'%s,"item":%s', item, self._rendered(item))

    # ---- the end ----

    def _end(self, ending: ev.RunEnded) -> None:
        self._close_last("completed" if ending.status == "complete" else "incomplete")
        self._close_calls()
        self.ended = True
        how = frames.outcome(ending.status, ending.reason, ending.finish_reason, ending.error, self._usage)
        items = [self._rendered(item) for item in self._items]
        self._respond(_ENDINGS.get(how.status, "response.incomplete"), how, items)

    # ---- writing ----

    def _add(self, kind: Kind, call: Tool | None = None) -> Item:
        item = Item(kind, self._run, len(self._items), call)
        self._items.append(item)
        return item

    def _added(self, item: Item, rendered: bytes) -> None:
        index = item.where.rpartition(b",")[2]
        self._out.append(
            b'event: response.output_item.added\ndata: {"type":"response.output_item.added",'
            b'"sequence_number":%d,%s,"item":%s}\n\n' % (self.number, index, rendered)
        )
        self.number += 1

    def _rendered(self, item: Item, status: str | None = None) -> bytes:
        call = item.call
        if item.kind == "msg":
            return frames.message(item.id, status or ("completed" if item.closed else "incomplete"), item.text)
        if item.kind == "rs":
            return frames.reasoning(item.id, status or ("completed" if item.closed else "incomplete"), item.text)
        assert call is not None
        if item.kind == "fc":
            status = status or output.call_status(ev.unquoted([item.text]))
            return frames.function_call(item.id, status, call.call_id, call.name, item.text)
        failed = call.state == "done" and call.is_error
        if status is None:
            status = ("failed" if failed else "completed") if call.state == "done" else "incomplete"
        args = item.text if call.args == "" else frames.quote(frames.arguments(call.args))
        return frames.own_call(item.id, status, call.name, args, call.result, failed=failed)

    def _event(self, name: str, fields: bytes, item: Item, *more: bytes) -> None:
        told = name.encode()
        head = b'event: %s\ndata: {"type":"%s","sequence_number":%d,' % (told, told, self.number)
        self._out.append(head + fields % (item.where, *more) + b"}\n\n")
        self.number += 1

    def _respond(self, name: str, how: frames.Outcome, items: Sequence[bytes] = ()) -> None:
        told, body = name.encode(), frames.response(self._base, how, items)
        data = b'event: %s\ndata: {"type":"%s","sequence_number":%d,"response":%s}\n\n'
        self._out.append(data % (told, told, self.number, body))
        self.number += 1


def _sum(a: ev.Usage | None, b: ev.Usage) -> ev.Usage:
    if a is None:
        return b
    return ev.Usage(a.input_tokens + b.input_tokens, a.output_tokens + b.output_tokens)
