"""The messages of a session, as the gateway lists them: the conversation that the next run is told, and the rest of an
answer that was not seen. Pure."""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from holdfast.agents.gateway.events import pieces
from holdfast.core import events as ev
from holdfast.core import lenient_json
from holdfast.core.json_limits import is_too_large
from holdfast.core.parts import Json, Part, TextPart, ToolPart
from holdfast.tools.result_text import MAX_RESULT, as_text, shorten

_MAX_HISTORY: Final = 1_000_000  # Characters of the conversation; the end is kept
_MAX_TURN: Final = _MAX_HISTORY // 2  # Of one message, so that the last answer and its question always fit
_MAX_SHOWN: Final = 1_000  # Characters of a call's arguments or result in the conversation
_MAX_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class _PastCall:
    name: str
    args: Json
    result: str | None  # None: it has none yet

    @property
    def line(self) -> str:
        result = "no result" if self.result is None else shorten(self.result, _MAX_SHOWN)
        return f"[{self.name}({shorten(as_text(self.args), _MAX_SHOWN)}) → {result}]"


_Item = str | _PastCall


def conversation(rows: Sequence[Any]) -> list[dict[str, str]]:
    """`conversation_history` of a run. The gateway passes on roles and texts alone, so calls are told as text."""
    found: list[dict[str, str]] = []
    room = _MAX_HISTORY
    for role, items in reversed(_turns(rows)):
        text = "\n".join(item.line if isinstance(item, _PastCall) else item for item in items)
        if not text.strip():
            continue
        text = text[-_MAX_TURN:]
        if len(text) > room:
            break
        room -= len(text)
        found.append({"role": role, "content": text})
    while found and found[-1]["role"] != "user":  # a conversation begins with a user's message
        found.pop()
    return found[::-1]


def user_texts(rows: Sequence[Any]) -> set[str]:
    return {_content(row).strip() for row in _objects(rows) if row.get("role") == "user"}


def rest_of_answer(rows: Sequence[Any], shown: Sequence[Part], run_id: str, before: int) -> list[ev.Event]:
    """What a run did after its events were lost, as events: the ends of calls that were announced, further calls, and
    the text that was not shown. `before`: characters of text that were shown when it began."""
    turns = _turns(rows)
    items = turns[-1][1] if turns and turns[-1][0] == "assistant" else []
    events: list[ev.Event] = []
    position = 0  # After the last call that was announced
    calls: defaultdict[str, deque[tuple[int, _PastCall]]] = defaultdict(deque)  # By name
    for n, item in enumerate(items):
        if isinstance(item, _PastCall):
            calls[item.name].append((n, item))
    for part in shown:
        if not isinstance(part, ToolPart) or not part.call_id.startswith(f"{run_id}-"):
            continue
        alike = calls[part.name]
        while alike and alike[0][0] < position:
            alike.popleft()
        if alike:
            n, call = alike.popleft()
            position = n + 1
            if part.state == "unknown" and call.result is not None:
                events.append(_finished(part.call_id, call.result))
    seen = _text_at_end(shown, before)
    for n, item in enumerate(items[position:], position):
        if isinstance(item, _PastCall):
            call_id = f"{run_id}-late-{n}"
            events.append(ev.ToolStarted(call_id, item.name, item.args))
            if item.result is not None:
                events.append(_finished(call_id, item.result))
        else:
            events += [ev.TextDelta(piece) for piece in pieces(unseen(item, seen))]
        seen = ""
    return events


def _finished(call_id: str, result: str) -> ev.ToolFinished:
    return ev.ToolFinished(call_id, shorten(result, MAX_RESULT), False, 0)


def shown_text(parts: Sequence[Part]) -> int:
    """Characters of the answer's text."""
    return sum(len(part.text) for part in parts if isinstance(part, TextPart))


def _text_at_end(parts: Sequence[Part], before: int) -> str:
    """The text after the last tool, without that of earlier runs, which had `before` characters."""
    texts: list[str] = []
    position = 0
    for part in parts:
        if isinstance(part, TextPart):
            texts.append(part.text[max(0, before - position) :])
            position += len(part.text)
        elif isinstance(part, ToolPart):
            texts = []
    return "".join(texts)


def unseen(text: str, seen: str) -> str:
    """The text without the beginning that was seen. The gateway strips what it stores. If it stores something else,
    that is shown as a whole."""
    for beginning in (seen.lstrip(), seen.strip()):
        if text.startswith(beginning):
            return text[len(beginning) :]
    return text


def _turns(rows: Sequence[Any]) -> list[tuple[str, list[_Item]]]:
    """Messages by role: what follows a user's message up to the next one is one answer."""
    turns: list[tuple[str, list[_Item]]] = []
    results = {
        call_id: _content(row)
        for row in _objects(rows)
        if row.get("role") == "tool" and isinstance(call_id := row.get("tool_call_id"), str)
    }
    for row in _objects(rows):
        role = row.get("role")
        if role not in ("user", "assistant"):
            continue
        items: list[_Item] = [text] if (text := _content(row)).strip() else []
        if role == "assistant":
            items += _calls(row.get("tool_calls"), results)
        if turns and turns[-1][0] == role == "assistant":
            turns[-1][1].extend(items)
        else:
            turns.append((role, items))
    return turns


def _calls(value: Any, results: Mapping[str, str]) -> Iterator[_PastCall]:
    for call in _objects(value):
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            continue
        call_id = call.get("id")
        args = function.get("arguments")
        found = args
        if isinstance(args, str) and len(args) <= MAX_RESULT:  # a string may have any number of values
            with suppress(ValueError):
                found = lenient_json.loads(args.encode("utf-8", "replace"))
        if is_too_large(found, MAX_RESULT):
            found = {"note": "The arguments are too long to be shown."}
        result = results.get(call_id) if isinstance(call_id, str) else None
        yield _PastCall(function["name"][:_MAX_NAME], found, result)


def _content(row: Mapping[str, Any]) -> str:
    """The text of a message; parts that are no text are left out."""
    content = row.get("content")
    if isinstance(content, list):
        return "\n".join(text for part in _objects(content) if isinstance(text := part.get("text"), str))
    return content if isinstance(content, str) else ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
