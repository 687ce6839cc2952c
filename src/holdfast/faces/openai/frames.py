"""Objects and events as the bytes that are sent. Texts stay quoted as the journal has them: what was encoded once is
put into place, not decoded and encoded again."""

import json
from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import Any, Final

from holdfast.core.events import Failure, Usage
from holdfast.core.parts import Json
from holdfast.core.values import dataclass

LABEL: Final = "holdfast"
"""The name under which tools of ours are shown: as calls that the server makes, which no client tries to answer."""


def dump(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def quote(text: str) -> bytes:
    """The text as JSON writes it, without the quotes around it."""
    return encode_basestring(text)[1:-1].encode("utf-8", "replace")


def arguments(args: Json) -> str:
    return args if isinstance(args, str) else json.dumps(args, ensure_ascii=False, separators=(",", ":"))


# ---- items ----


def message(item_id: str, status: str, text: bytes) -> bytes:
    return b'{"id":"%s","type":"message","status":"%s","role":"assistant","content":[%s]}' % (
        item_id.encode(),
        status.encode(),
        text_part(text),
    )


def text_part(text: bytes) -> bytes:
    return b'{"type":"output_text","text":"%s","annotations":[],"logprobs":[]}' % text


def reasoning(item_id: str, status: str, text: bytes) -> bytes:
    return b'{"id":"%s","type":"reasoning","status":"%s","summary":[%s]}' % (
        item_id.encode(),
        status.encode(),
        summary_part(text),
    )


def summary_part(text: bytes) -> bytes:
    return b'{"type":"summary_text","text":"%s"}' % text


def function_call(item_id: str, status: str, call_id: str, name: str, args: bytes) -> bytes:
    return b'{"id":"%s","type":"function_call","status":"%s","call_id":%s,"name":%s,"arguments":"%s"}' % (
        item_id.encode(),
        status.encode(),
        dump(call_id),
        dump(name),
        args,
    )


def own_call(item_id: str, status: str, name: str, args: bytes, output: Json, *, failed: bool) -> bytes:
    """A tool of ours."""
    told = None if output is None else arguments(output)
    error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": told or ""}]} if failed else None
    return b'{"id":"%s","type":"mcp_call","status":"%s","server_label":"%s","name":%s,"arguments":"%s",%s}' % (
        item_id.encode(),
        status.encode(),
        LABEL.encode(),
        dump(name),
        args,
        dump({"approval_request_id": None, "output": None if failed else told, "error": error})[1:-1],
    )


# ---- the response ----


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a response stands."""

    status: str
    error: Json = None
    incomplete: Json = None
    usage: Usage | None = None


_OPEN: Final = ("queued", "in_progress")
_NOTHING: Final = Usage(0, 0)
_CODES: Final = {"rate-limit": "rate_limit_exceeded", "bad-request": "invalid_prompt"}


def outcome(
    ending: str, reason: str | None, finish_reason: str | None, error: Failure | None, usage: Usage | None
) -> Outcome:
    """Of a run that has ended. An interrupted one has failed for its client; what it said is there all the same."""
    match ending:
        case "complete" if finish_reason in ("length", "content_filter"):
            why = "max_output_tokens" if finish_reason == "length" else "content_filter"
            return Outcome("incomplete", None, {"reason": why}, usage)
        case "complete":
            return Outcome("completed", usage=usage)
        case "cancelled":
            return Outcome("cancelled", usage=usage)
        case "failed":
            found = error or Failure("internal", "The run failed.")
            return Outcome(
                "failed", {"code": _CODES.get(found.code, "server_error"), "message": found.message}, None, usage
            )
        case _:
            told = (
                f"The server stopped while this was being answered ({reason or 'it went away'}). What was said is kept."
            )
            return Outcome("failed", {"code": "server_error", "message": told}, None, usage)


def response(base: bytes, how: Outcome, items: Sequence[bytes]) -> bytes:
    """`base`: the fields that never change, as an object."""
    return b'%s,"status":"%s","error":%s,"incomplete_details":%s,"output":[%s],"usage":%s}' % (
        base[:-1],
        how.status.encode(),
        dump(how.error),
        dump(how.incomplete),
        b",".join(items),
        dump(usage_of(how.usage, ended=how.status not in _OPEN)),
    )


def usage_of(usage: Usage | None, *, ended: bool) -> dict[str, Any] | None:
    """Clients count on figures at the end, so what a provider did not say is zero there."""
    if usage is None:
        return usage_of(_NOTHING, ended=True) if ended else None
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def chat_usage(usage: Usage | None) -> dict[str, int]:
    usage = usage or _NOTHING
    total = usage.input_tokens + usage.output_tokens
    return {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": total}
