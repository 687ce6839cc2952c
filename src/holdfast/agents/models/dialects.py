"""How servers of OpenAI's chat format differ. A dialect is data; `wire` follows it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from holdfast.core.parts import Json
from holdfast.core.values import dataclass

_USUAL = frozenset(
    {
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
        "stop",
        "presence_penalty",
        "frequency_penalty",
        "reasoning_effort",
        "response_format",
        "tool_choice",
        "parallel_tool_calls",
    }
)
_LOCAL = _USUAL | {"top_k", "min_p", "repeat_penalty"}


@dataclass(frozen=True, slots=True)
class Dialect:
    settings: frozenset[str] = _USUAL
    """Settings that are passed on; others are left out."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Goes into every request."""
    ask_usage: bool = True
    """Whether `stream_options` is understood. Those that do not know it report usage anyway."""
    reasoning_back: Literal["never", "tool-turns"] = "never"
    """Whether reasoning goes back as `reasoning_content` with the calls of the turn that is under way."""
    prefill: Literal["never", "plain", "flags", "prefix"] = "never"
    """How a server is told to go on from the assistant's last message."""
    short_ids: bool = False
    """Call ids have to be nine letters or digits."""


GENERIC = Dialect()
LOCAL_SERVER = Dialect(settings=_LOCAL, reasoning_back="tool-turns")
DIALECTS: Mapping[str, Dialect] = {
    "openai": Dialect(renamed={"max_tokens": "max_completion_tokens"}),
    "openrouter": Dialect(settings=_LOCAL, extra={"usage": {"include": True}}),
    "deepseek": Dialect(settings=_USUAL - {"reasoning_effort", "seed"}, reasoning_back="tool-turns"),
    "mistral": Dialect(
        settings=_USUAL - {"reasoning_effort"},
        renamed={"seed": "random_seed"},
        ask_usage=False,
        prefill="prefix",
        short_ids=True,
    ),
    "ollama": LOCAL_SERVER,
    "lmstudio": LOCAL_SERVER,
    "llamacpp": Dialect(settings=_LOCAL, reasoning_back="tool-turns", prefill="plain"),
    "vllm": Dialect(settings=_LOCAL, reasoning_back="tool-turns", prefill="flags"),
}
