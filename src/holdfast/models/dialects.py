"""Dialects: how servers with OpenAI's chat format differ, as data that `openai_request` follows. Settings that a server
does not take are left out here; their ranges: `core.chat_settings`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from holdfast.core.parts import Json

_SAMPLING = frozenset({"temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty"})
_USUAL = _SAMPLING | {"max_tokens", "reasoning_effort", "response_format", "tool_choice", "parallel_tool_calls"}
ALL_SETTINGS = _USUAL | {"top_k", "min_p", "repeat_penalty"}  # Those of local servers; no server takes others


@dataclass(frozen=True, slots=True)
class ChatDialect:
    settings: frozenset[str] = _USUAL  # Settings that are sent; others are left out
    renamed: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)  # Fields added to every request
    ask_usage: bool = True  # Whether to send `stream_options`. Servers that reject it report usage anyway.
    reasoning_back: Literal["never", "tool-turns"] = "never"
    """Whether reasoning is sent back as `reasoning_content` with the tool calls of the current turn."""
    prefill: Literal["never", "plain", "flags", "prefix"] = "never"
    """How a server is asked to continue the last assistant message: `plain` adds nothing, `flags` adds vLLM's
    `continue_final_message` to the request, `prefix` adds `prefix` to the message."""
    short_ids: bool = False  # Call ids must be nine letters or digits
    tool_images: Literal["user", "tool"] = "user"
    """Which message carries the images of a tool result. OpenAI's format allows them in user messages only."""


GENERIC = ChatDialect()
LOCAL_SERVER = ChatDialect(settings=ALL_SETTINGS, reasoning_back="tool-turns")
DIALECTS: Mapping[str, ChatDialect] = {
    "openai": ChatDialect(renamed={"max_tokens": "max_completion_tokens"}),
    "openrouter": ChatDialect(settings=ALL_SETTINGS, extra={"usage": {"include": True}}),
    "deepseek": ChatDialect(settings=_USUAL - {"reasoning_effort", "seed"}, reasoning_back="tool-turns"),
    "mistral": ChatDialect(
        settings=_USUAL - {"reasoning_effort"},
        renamed={"seed": "random_seed"},
        ask_usage=False,
        prefill="prefix",
        short_ids=True,
        tool_images="tool",  # it accepts no user message right after a tool's
    ),
    "ollama": LOCAL_SERVER,
    "lmstudio": LOCAL_SERVER,
    "llamacpp": ChatDialect(settings=ALL_SETTINGS, reasoning_back="tool-turns", prefill="plain"),
    "vllm": ChatDialect(settings=ALL_SETTINGS, reasoning_back="tool-turns", prefill="flags"),
}
