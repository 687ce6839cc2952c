"""Translates a call of `/v1/messages` into a chat completion, which can express all of it. Pure."""

from collections.abc import Sequence
from typing import Any, Final, assert_never

from pydantic import ValidationError

from holdfast.core.validation_text import validation_text
from holdfast.server.anthropic import schemas as a
from holdfast.server.anthropic.errors import THREAD_UNSUPPORTED
from holdfast.server.openai.errors import ParameterError
from holdfast.server.openai.json_bytes import dump_text
from holdfast.server.openai.schemas import ChatRequest

_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_LOW_BUDGET: Final = 4_000
_HIGH_BUDGET: Final = 16_000


def chat_request(body: a.MessagesRequest) -> tuple[ChatRequest, list[str]]:
    """The same call as a chat completion, and the paths of the tools that are ignored because Anthropic runs them."""
    if body.thread is not None:
        raise ParameterError("thread", "Conversations are not held here. Send all messages.", THREAD_UNSUPPORTED)
    own = [(n, tool) for n, tool in enumerate(body.tools or ()) if tool.type in (None, "custom")]
    ignored = [f"tools[{n}]" for n, tool in enumerate(body.tools or ()) if tool.type not in (None, "custom")]
    wanted: dict[str, Any] = {
        "model": body.model,
        "messages": messages(body),
        "stream": body.stream,
        "max_tokens": body.max_tokens,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "top_k": body.top_k,
        "stop": body.stop_sequences or None,
        "reasoning_effort": _effort(body),
        "response_format": _answer_format(body),
    }
    if own:
        wanted["tools"] = [_tool(n, tool) for n, tool in own]
        choice = body.tool_choice
        if choice is not None:
            named = {"type": "function", "function": {"name": choice.name or ""}}
            wanted["tool_choice"] = named if choice.type == "tool" else _CHOICES[choice.type]
            wanted["parallel_tool_calls"] = False if choice.disable_parallel_tool_use else None
    known = {name: value for name, value in wanted.items() if value is not None}
    try:
        return ChatRequest.model_validate(known), ignored
    except ValidationError as error:
        first = error.errors()[0]
        raise ParameterError(
            str(first["loc"][0]), f"{'.'.join(map(str, first['loc']))}: {validation_text(first)}"
        ) from None


def messages(body: a.CountTokensRequest) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    system = body.system if isinstance(body.system, str) else "\n\n".join(each.text for each in body.system or ())
    if system:
        found.append({"role": "system", "content": system})
    for n, message in enumerate(body.messages):
        blocks: Sequence[a.AnthropicBlock] = (
            [a.AnthropicText(type="text", text=message.content)]
            if isinstance(message.content, str)
            else message.content
        )
        if message.role == "system":
            texts = [block.text for block in blocks if isinstance(block, a.AnthropicText)]
            found.append({"role": "system", "content": "\n\n".join(texts)})
            continue
        read = _user if message.role == "user" else _assistant
        found += read(blocks, f"messages[{n}]")
    return found


def _tool(n: int, tool: a.AnthropicTool) -> dict[str, Any]:
    if tool.input_schema is None:
        raise ParameterError(f"tools[{n}].input_schema", f"tools[{n}].input_schema: Field required")
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def _answer_format(body: a.MessagesRequest) -> dict[str, Any] | None:
    given = body.output_format if body.output_config is None else body.output_config.format
    if given is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": given.json_schema, "strict": True}}


def _effort(body: a.MessagesRequest) -> str | None:
    if body.output_config is not None and body.output_config.effort is not None:
        return body.output_config.effort
    thinking = body.thinking
    if thinking is None or thinking.type == "disabled":
        return None
    budget = thinking.budget_tokens or _LOW_BUDGET
    return "low" if budget < _LOW_BUDGET else "medium" if budget < _HIGH_BUDGET else "high"


def _user(blocks: Sequence[a.AnthropicBlock], param: str) -> list[dict[str, Any]]:
    """Results of tools come first, because they follow the calls."""
    results: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []
    for n, block in enumerate(blocks):
        match block:
            case a.AnthropicText(text=text):
                content.append({"type": "text", "text": text})
            case a.AnthropicImage(source=source):
                url = source.url if source.type == "url" else f"data:{source.media_type};base64,{source.data}"
                content.append({"type": "image_url", "image_url": {"url": url}})
            case a.AnthropicDocument(source=source) if source.type == "text":
                content.append({"type": "text", "text": source.data})
            case a.AnthropicDocument(source=source) if source.type == "url":
                content.append({"type": "file", "file": {"file_url": source.url}})
            case a.AnthropicDocument(source=source, title=title):
                data = f"data:{source.media_type};base64,{source.data}"
                content.append({"type": "file", "file": {"filename": title or "document.pdf", "file_data": data}})
            case a.AnthropicToolResult():
                results.append({"role": "tool", "tool_call_id": block.tool_use_id, "content": _result(block)})
            case a.AnthropicThinking() | a.AnthropicRedacted() | a.AnthropicToolUse():
                raise ParameterError(f"{param}.content[{n}]", f"A user message cannot have a {block.type!r} block.")
            case _:
                assert_never(block)
    return [*results, {"role": "user", "content": content}] if content else results


def _result(block: a.AnthropicToolResult) -> str:
    """Images in results are named only: a chat completion has no place for them."""
    if isinstance(block.content, str):
        return block.content
    return "\n\n".join(part.text if isinstance(part, a.AnthropicText) else "[An image]" for part in block.content)


def _assistant(blocks: Sequence[a.AnthropicBlock], param: str) -> list[dict[str, Any]]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for n, block in enumerate(blocks):
        match block:
            case a.AnthropicText(text=text):
                texts.append(text)
            case a.AnthropicThinking(thinking=thinking):
                thoughts.append(thinking)
            case a.AnthropicToolUse():
                function = {"name": block.name, "arguments": dump_text(block.input)}
                calls.append({"id": block.id, "type": "function", "function": function})
            case a.AnthropicRedacted():
                pass
            case _:
                message = f"An assistant message cannot have a {block.type!r} block."
                raise ParameterError(f"{param}.content[{n}]", message)
    message_fields: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        message_fields["reasoning_content"] = "".join(thoughts)
    if calls:
        message_fields["tool_calls"] = calls
    return [message_fields]
