"""The model port: requests to a language model and its answers. Plain values; an adapter translates them to its
provider's wire format and back, and lets no third-party type or exception out.

Usage:

    async with model.stream(request) as answer:
        async for deltas in answer:
            ...
    answer.calls, answer.finish_reason

Leaving the block closes the upstream at once, also on cancellation in mid-await.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from holdfast.core.events import ReasoningDelta, StepRetrying, TextDelta, ToolDelta, Usage
from holdfast.core.parts import Json, ReasoningPart, TextPart
from holdfast.ports.agent import AgentError

Ability = Literal["tools", "images", "documents", "reasoning", "prefill"]
"""What a model can do. `prefill`: it continues an assistant message that ends the conversation."""
ProviderKind = Literal[
    "openai",
    "openrouter",
    "groq",
    "deepseek",
    "mistral",
    "xai",
    "together",
    "ollama",
    "lmstudio",
    "llamacpp",
    "vllm",
    "compatible",
    "anthropic",
    "google",
]
KeySource = Literal["settings", "file", "environment"]
"""Where a provider's API key comes from. `settings`: a person entered it; `file`: holdfast.toml."""
"""The wire format and its dialect. `compatible`: any other server with OpenAI's format."""


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """A provider that is configured or can be, as the settings show it."""

    name: str
    base_url: str
    key_source: KeySource | None = None
    key_name: str = ""  # The environment variable, if the key comes from there
    added: bool = False  # Whether it was added on a page, where it can be removed
    title: str = ""  # The name that is shown to people, if it is another
    images: bool = False  # Whether its models are sent images even if it does not say that they can see them


@dataclass(frozen=True, slots=True)
class ProviderCheck:
    """What came of asking a provider for its models, in words for people."""

    name: str
    title: str
    base_url: str
    models: tuple[str, ...] = ()  # Names
    reason: str | None = None  # Why there are none, and what to do


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model in the list. `id` is `provider/name`, which sessions store; `name` is shown to people."""

    id: str
    name: str
    provider: str
    context: int | None = None  # Context size in tokens, if known
    abilities: frozenset[Ability] = frozenset()
    available: bool = True
    reason: str | None = None  # Why it is not available and what to do, in words for people
    settings: frozenset[str] = frozenset()  # Those that it takes; others are left out of requests


# ---- requests ----


@dataclass(frozen=True, slots=True)
class Media:
    """An image or a PDF from the user, or an image from a tool, for a model that takes it."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete call. If the model wrote invalid arguments, `invalid` says why and `args` is the raw text."""

    call_id: str
    name: str
    args: Json
    provider: Json = None  # Opaque data to send back to the provider with the call
    invalid: str | None = None
    text: str | None = None  # The arguments as the model wrote them, if known; sent back as they are


@dataclass(frozen=True, slots=True)
class UserMessage:
    content: tuple[str | Media, ...]


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    parts: tuple[TextPart | ReasoningPart | ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of a call. Every call of an `AssistantMessage` is followed by one."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    images: tuple[Media, ...] = ()  # Only for a model that takes images


ChatMessage = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    parameters: Mapping[str, Json]  # The JSON schema of an object
    strict: bool | None = None  # Whether the provider must enforce the schema, if it can
    size: int = field(init=False, compare=False, repr=False)  # In a request, about; computed once for all turns

    def __post_init__(self) -> None:
        size = len(self.name) + len(self.description) + len(json.dumps(dict(self.parameters)))
        object.__setattr__(self, "size", size)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """`messages` ends with a `UserMessage` or `ToolMessage`; with an `AssistantMessage` only for a model that can
    `prefill`, which then continues its text without repeating it."""

    system: str | None
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    settings: Mapping[str, Json] = field(default_factory=dict)
    """temperature, top_p, max_tokens, seed, reasoning_effort, stop …; an adapter omits what its provider lacks."""
    on_retry: Callable[[StepRetrying], object] | None = field(default=None, compare=False, repr=False)
    """Called before the request is sent again."""


# ---- answers ----

Delta = TextDelta | ReasoningDelta | ToolDelta | Usage

Take = Callable[[Sequence[Delta]], bool]  # Consumes deltas without blocking. Returns False to stop for now.


class ModelAnswer(Protocol):
    """An answer as it arrives. It can be iterated once."""

    def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        """Yields deltas that arrived together, never an empty sequence. A `ToolDelta` carries arguments as they are
        written. `Usage` is the provider's total of this call, at most once. Raises ModelError."""

    async def follow(self, take: Take) -> None:
        """Between two iterations, calls `take` with deltas as they arrive, without waking a task for each. Returns when
        `take` returns False or there is something to iterate; an adapter without support returns at once."""

    @property
    def calls(self) -> Sequence[ToolCall]:
        """After the last delta: the requested tool calls in order, with distinct call ids."""

    @property
    def finish_reason(self) -> str | None:
        """After the last delta: stop, length, tool_calls, content_filter …, as the provider states it."""


class Model(Protocol):
    @property
    def info(self) -> ModelInfo: ...

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[ModelAnswer]:
        """Entering sends the request; it is retried only before the first delta. Raises ModelError, also in
        iteration."""


UNSUPPORTED: Final = "unsupported-"  # Before the name of a setting, in the code of a `ModelError`


class ModelError(AgentError):
    """The model could not answer. `code` is stable (`auth`, `rate-limit`, `context-length`, `unavailable`, `timeout`,
    `protocol`, `refused`, `bad-request`, `unsupported-` with the name of a setting); the message says what happened and
    what to do."""
