"""The response object: the parameters of the call, the status of its run, and the output items, which the event stream
renders with the same code. Its ids: `ids`; numbers of events: `response_events`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from holdfast.core.events import ApprovalRequested, Failure, RunEnded, Usage, unquoted
from holdfast.core.ids import RunId
from holdfast.core.parts import (
    FilePart,
    Json,
    Part,
    PlanPart,
    ReasoningPart,
    RememberedPart,
    SteeredPart,
    TextPart,
    ToolPart,
)
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.core.transcript import Transcript
from holdfast.ports.model import UNSUPPORTED
from holdfast.server.openai import errors, ids
from holdfast.server.openai.client_tools import ClientTools, custom_input, of_tools, sent_tools
from holdfast.server.openai.json_bytes import as_text, dump, escape
from holdfast.server.openai.model_names import AGENT_PREFIX, DIRECT
from holdfast.server.openai.schemas import ChatRequest, ResponseRequest

ItemKind = Literal["msg", "rs", "fc", "ctc", "mcp"]
"""The prefix of its id: a message, reasoning, a call of the client's function or custom tool, a call of one of the
server's tools."""
_TYPES: Final = {
    "msg": b"message",
    "rs": b"reasoning",
    "fc": b"function_call",
    "ctc": b"custom_tool_call",
    "mcp": b"mcp_call",
}
_CODES: Final = {"rate-limit": "rate_limit_exceeded", "bad-request": "invalid_prompt"}
_NO_USAGE: Final = Usage(0, 0)


# ---- what is stored of the call ----


def stored_parameters(
    body: ResponseRequest | ChatRequest, sent: Mapping[str, Any], model: str, ignored: list[str]
) -> dict[str, Json]:
    """The parameters that are stored with the run, because every rendering of the response repeats them. `sent`: the
    body as JSON."""
    stored: dict[str, Json] = {"model": model, "ignored": ignored, "metadata": body.metadata or {}}
    if isinstance(body, ResponseRequest):
        stored |= {
            "previous_response_id": body.previous_response_id,
            "background": bool(body.background),
            "store": body.store is not False,
            "reasoning": None if body.reasoning is None else body.reasoning.model_dump(include={"effort", "summary"}),
            "text": (sent.get("text") or {}).get("format"),
            "tools": sent_tools(sent),
            "tool_choice": sent.get("tool_choice"),
        }
    return stored


MODEL_SETTING: Final = ("openai", "model")
BACKGROUND_SETTING: Final = ("openai", "background")
"""Where the settings of a run have these. Those of a chat completion have a model only."""


def _settings(run: Run) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The settings of the run, and the stored parameters among them."""
    settings = run.settings if isinstance(run.settings, dict) else {}
    stored = settings.get("openai")
    return settings, stored if isinstance(stored, dict) else {}


def has_server_tools(run: Run) -> bool:
    """Whether its tool calls are calls of the server's tools: a model alone has the client's functions only."""
    return run.agent != DIRECT


def asks_client(run: Run) -> bool:
    """Whether it waits for an approval that its client can give: a response began it."""
    return run.status == "waiting" and has_server_tools(run) and "background" in _settings(run)[1]


def client_tools(run: Run) -> ClientTools:
    return of_tools(_settings(run)[1].get("tools"))


def model_name(run: Run) -> str:
    return str(_settings(run)[1].get("model") or run.model or f"{AGENT_PREFIX}{run.agent}")


def is_background(run: Run) -> bool:
    return bool(_settings(run)[1].get("background", run.lifetime == "detached"))


def _ignored(run: Run) -> list[str]:
    ignored = _settings(run)[1].get("ignored")
    return [str(name) for name in ignored] if isinstance(ignored, list) else []


def headers(run: Run) -> list[tuple[bytes, bytes]]:
    """Headers that name the run, so that the client finds it in the native API, and the ignored parameters."""
    names = [
        (b"holdfast-run", run.id.encode()),
        (b"holdfast-session", run.session_id.encode()),
        (b"x-request-id", run.id.encode()),
    ]
    ignored = _ignored(run)
    return [*names, (b"holdfast-ignored", ", ".join(ignored).encode("latin-1", "replace"))] if ignored else names


# ---- rendering ----


def constant_fields(run: Run) -> bytes:
    """The fields that never change, as a JSON object."""
    settings, stored = _settings(run)
    choice = stored.get("tool_choice")
    return dump(
        {
            "id": ids.response_id(run.id),
            "object": "response",
            "created_at": int(run.created_at),
            "background": is_background(run),
            "model": model_name(run),
            "instructions": settings.get("instructions"),
            "metadata": stored.get("metadata") or {},
            "previous_response_id": stored.get("previous_response_id"),
            "conversation": {"id": ids.conversation_id(run.session_id)},
            "tools": stored.get("tools") or [],
            "tool_choice": "auto" if choice is None else choice,
            "parallel_tool_calls": settings.get("parallel_tool_calls") is not False,
            "temperature": settings.get("temperature"),
            "top_p": settings.get("top_p"),
            "max_output_tokens": settings.get("max_tokens"),
            "max_tool_calls": None,
            "reasoning": stored.get("reasoning") or {"effort": None, "summary": None},
            "text": {"format": stored.get("text") or {"type": "text"}},
            "store": stored.get("store", True),
            "truncation": "disabled",
            "service_tier": "default",
            "user": None,
            "holdfast": {"run": run.id, "session": run.session_id, "ignored": _ignored(run)},
        }
    )


@dataclass(frozen=True, slots=True)
class ResponseStatus:
    status: str
    error: Json = None
    incomplete: Json = None
    usage: Usage | None = None


def status_of_ended(ended: Run | Transcript | RunEnded, usage: Usage | None) -> ResponseStatus:
    """OpenAI has no interrupted responses: they are failed ones that have output."""
    match ended.status:
        case "complete" if ended.finish_reason in ("length", "content_filter"):
            limit = "max_output_tokens" if ended.finish_reason == "length" else "content_filter"
            return ResponseStatus("incomplete", None, {"reason": limit}, usage)
        case "complete":
            return ResponseStatus("completed", usage=usage)
        case "cancelled":
            return ResponseStatus("cancelled", usage=usage)
        case "failed":
            failure = ended.error or Failure("internal", "The run failed.")
            return ResponseStatus("failed", _error(failure), None, usage)
        case _:
            cause = ended.reason or "crash"
            message = f"The server stopped during this response ({cause}). The output so far is saved."
            return ResponseStatus("failed", _error(Failure("interrupted", message)), None, usage)


def _error(failure: Failure) -> Json:
    """With the fields of an error response, which some clients require."""
    kind = errors.of_failure(failure)[1]["error"]["type"]
    code = _CODES.get("bad-request" if failure.code.startswith(UNSUPPORTED) else failure.code, "server_error")
    return {"code": code, "message": failure.message, "type": kind, "param": None}


def render(constant: bytes, status: ResponseStatus, items: Sequence[bytes]) -> bytes:
    """The object. `constant`: what `constant_fields` returned."""
    usage = status.usage
    if usage is None and status.status not in ("queued", "in_progress"):
        usage = _NO_USAGE  # clients rely on numbers in an ended response
    return b'%s,"status":"%s","error":%s,"incomplete_details":%s,"output":[%s],"usage":%s}' % (
        constant[:-1],
        status.status.encode(),
        dump(status.error),
        dump(status.incomplete),
        b",".join(items),
        dump(None if usage is None else _usage_fields(usage)),
    )


def _usage_fields(usage: Usage) -> dict[str, Json]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def render_current(run: Run, answer: Message) -> bytes:
    """The response as it is now. `answer` is the message as it is stored, or folded from the journal so far."""
    if not run.is_open:
        return _render_parts(run, answer, status_of_ended(run, run.usage))
    return _render_parts(run, answer, ResponseStatus("queued" if run.status == "queued" else "in_progress"))


def render_ended(run: Run, transcript: Transcript) -> bytes:
    """The response of a run whose journal has ended, or that waits for an approval: that is a complete response."""
    waits = transcript.approval is not None
    status = ResponseStatus("completed", usage=transcript.usage) if waits else None
    return _render_parts(run, transcript, status or status_of_ended(transcript, transcript.usage))


def approval_item(question: ApprovalRequested) -> bytes:
    return dump(
        {
            "id": ids.approval_request_id(question.approval_id),
            "type": "mcp_approval_request",
            "server_label": "holdfast",
            "name": question.name,
            "arguments": as_text(question.args),
        }
    )


def _render_parts(run: Run, answer: Message | Transcript, status: ResponseStatus) -> bytes:
    complete = answer.status in ("complete", "streaming")
    items = render_parts(
        run.id, answer.parts, complete=complete, server_tools=has_server_tools(run), tools=client_tools(run)
    )
    if isinstance(answer, Transcript) and answer.approval is not None:
        items.append(approval_item(answer.approval))
    return render(constant_fields(run), status, items)


# ---- output items ----


class OutputItem:
    """An output item. Its text, or the arguments of its call, arrive in pieces while the model writes them."""

    __slots__ = ("call", "complete", "id", "index", "kind", "pieces", "tools")

    def __init__(
        self,
        kind: ItemKind,
        run: RunId,
        index: int,
        call: ToolPart | None = None,
        tools: ClientTools = MappingProxyType({}),
    ) -> None:
        self.kind = kind
        self.id = ids.item_id(kind, run, index)
        self.index = index
        self.call = call
        self.tools = tools
        self.pieces: list[bytes] = []  # Escaped as in JSON
        self.complete = False

    @property
    def text(self) -> bytes:
        if len(self.pieces) > 1:
            self.pieces = [b"".join(self.pieces)]
        return self.pieces[0] if self.pieces else b""

    def render(self) -> bytes:
        return self._render(self._status(), self.content_part())

    def content_part(self) -> bytes:
        """The only part of a message or of reasoning."""
        if self.kind == "msg":
            return b'{"type":"output_text","text":"%s","annotations":[],"logprobs":[]}' % self.text
        return b'{"type":"summary_text","text":"%s"}' % self.text

    def render_new(self) -> bytes:
        """As the stream announces it: in progress and without content."""
        return self._render("in_progress", b"")

    def _status(self) -> str:
        match self.kind, self.call:
            case "fc" | "ctc", _:
                return "completed" if _is_json_object(unquoted([self.text])) else "incomplete"
            case "mcp", ToolPart(state="done", is_error=False):
                return "completed"
            case "mcp", ToolPart(state="done" | "denied"):
                return "failed"
            case "mcp", ToolPart(state="running" | "pending" | "waiting"):
                return "in_progress"
            case "mcp", _:
                return "incomplete"
            case _:
                return "completed" if self.complete else "incomplete"

    def name_fields(self) -> dict[str, str]:
        """The name of the client's function, and its namespace if it has one."""
        flat = "" if self.call is None else self.call.name
        tool = self.tools.get(flat)
        if tool is None:
            return {"name": flat}
        return {"name": tool.name} if tool.namespace is None else {"name": tool.name, "namespace": tool.namespace}

    def custom_input(self) -> bytes:
        """The input of a custom tool, escaped as in JSON."""
        return escape(custom_input(unquoted([self.text])))

    def _render(self, status: str, content: bytes) -> bytes:
        head = b'{"id":"%s","type":"%s","status":"%s",' % (self.id.encode(), _TYPES[self.kind], status.encode())
        if self.kind == "msg":
            return b'%s"role":"assistant","content":[%s]}' % (head, content)
        if self.kind == "rs":
            return b'%s"summary":[%s]}' % (head, content)
        call = self.call
        assert call is not None
        if self.kind == "fc":
            about = dump({"call_id": call.call_id, **self.name_fields()})[1:-1]
            return b'%s%s,"arguments":"%s"}' % (head, about, self.text)
        if self.kind == "ctc":
            about = dump({"call_id": call.call_id, **self.name_fields()})[1:-1]
            return b'%s%s,"input":"%s"}' % (head, about, self.custom_input())
        name = dump(call.name)
        arguments = self.text if call.args == "" else escape(as_text(call.args))
        result = dump(_result_fields(call))[1:-1]
        return b'%s"server_label":"holdfast","name":%s,"arguments":"%s",%s}' % (head, name, arguments, result)


def _is_json_object(text: str) -> bool:
    """The arguments of a call are complete if they are: the beginning of a JSON object is not one, and neither is one
    that is nested too deeply to be parsed."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _result_fields(call: ToolPart) -> dict[str, object]:
    output = None if call.result is None else as_text(call.result)
    if call.state == "denied" or (call.state == "done" and call.is_error):
        content = [{"type": "text", "text": output or ""}]
        error = {"type": "mcp_tool_execution_error", "content": content}
        return {"approval_request_id": None, "output": None, "error": error}
    return {"approval_request_id": None, "output": output, "error": None}


def output_parts(parts: Iterable[Part]) -> list[Part]:
    """The parts that are output items, in order: the index of an item is its index here."""
    return [part for part in parts if not isinstance(part, RememberedPart | FilePart | PlanPart | SteeredPart)]


def render_parts(
    run: RunId,
    parts: Sequence[Part],
    *,
    complete: bool,
    server_tools: bool,
    tools: ClientTools = MappingProxyType({}),
) -> list[bytes]:
    """The items of a message: the same, under the same ids, as its stream had. `complete`: the last part was not cut
    off. `server_tools`: tool calls are calls of the server's tools, not of the client's functions."""
    shown = output_parts(parts)
    last = len(shown) - 1
    items: list[bytes] = []
    for index, part in enumerate(shown):
        item = _item(run, index, part, tools, server_tools=server_tools)
        item.complete = complete or index < last or (isinstance(part, ReasoningPart) and part.provider is not None)
        items.append(item.render())
    return items


def call_kind(name: str, tools: ClientTools, *, server_tools: bool) -> ItemKind:
    if server_tools:
        return "mcp"
    return "ctc" if name in tools and tools[name].is_custom else "fc"


def _item(run: RunId, index: int, part: Part, tools: ClientTools, *, server_tools: bool) -> OutputItem:
    match part:
        case TextPart(text):
            item = OutputItem("msg", run, index)
        case ReasoningPart(text):
            item = OutputItem("rs", run, index)
        case ToolPart(name=name, args=args):
            kind = call_kind(name, tools, server_tools=server_tools)
            item, text = OutputItem(kind, run, index, part, tools), as_text(args)
        case _:
            raise AssertionError(part)
    item.pieces = [escape(text)]
    return item
