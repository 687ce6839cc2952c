"""The model port: what a language model is given, and what comes back. Plain values; an adapter turns them into its
provider's wire format and back, and lets no third-party type or exception out.

A model is asked like this:

    async with model.stream(request) as answer:
        async for deltas in answer:
            ...
    answer.calls, answer.finish_reason

Leaving the block, also by cancellation in mid-await, closes the upstream at once (C7).
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import Literal, Protocol

from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, Usage
from holdfast.core.parts import Json, Reasoning, Text
from holdfast.core.values import dataclass
from holdfast.ports import AgentFailed

Ability = Literal["tools", "images", "documents", "reasoning", "prefill"]
"""What a model can do. `prefill`: it goes on from an assistant message that ends the conversation."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model in the list. `id` is `provider/name` and what a session stores; `name` is for people."""

    id: str
    name: str
    provider: str
    context: int | None = None
    """Tokens that fit, if known."""
    abilities: frozenset[Ability] = frozenset()
    available: bool = True
    reason: str | None = None
    """Why it is not available, in words that a person can act on."""


# ------------------------------------------------------------------------------------------------ what it is given


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a PDF or a text file of the person's."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete call. `args` is the parsed object; where the model wrote no valid one, `invalid` says why and `args`
    is the text as it came."""

    call_id: str
    name: str
    args: Json
    provider: Json = None
    """Opaque data that the provider wants back with the call."""
    invalid: str | None = None


@dataclass(frozen=True, slots=True)
class UserSaid:
    content: tuple[str | Media, ...]


@dataclass(frozen=True, slots=True)
class AssistantSaid:
    parts: tuple[Text | Reasoning | ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ToolSaid:
    """The answer to a call. Every call of an `AssistantSaid` has one after it."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


Said = UserSaid | AssistantSaid | ToolSaid


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    parameters: Mapping[str, Json]
    """A JSON schema of an object."""
    strict: bool | None = None
    """Whether the arguments have to keep to the schema, where the provider can promise it."""


@dataclass(frozen=True, slots=True)
class Request:
    """`messages` ends with a `UserSaid` or `ToolSaid`; with an `AssistantSaid` only for a model that can `prefill`,
    and then its text is gone on with, not repeated."""

    system: str | None
    messages: tuple[Said, ...]
    tools: tuple[ToolSpec, ...] = ()
    settings: Mapping[str, Json] = field(default_factory=dict)
    """temperature, top_p, max_tokens, seed, reasoning_effort, stop …; an adapter leaves out what its provider does not
    know."""


# ------------------------------------------------------------------------------------------------ what comes back

Delta = TextDelta | ReasoningDelta | ToolDelta | Usage


Take = Callable[[Sequence[Delta]], bool]
"""Takes deltas in, quickly; False: enough for now."""


class Answer(Protocol):
    """An answer as it arrives. To be iterated once."""

    def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        """What arrived together comes together, never empty. A `ToolDelta` here is arguments being written. `Usage` is
        reported at most once, as the provider's total of this call. ModelFailed where it cannot go on."""

    async def follow(self, take: Take) -> None:
        """Between two steps of the iteration: `take` is called with deltas in the moment they arrive, so that nobody
        has to be woken for each. Returns when it has said False, or when there is something to iterate for; at once
        where it is not possible. Raises what `take` raises."""

    @property
    def calls(self) -> Sequence[ToolCall]:
        """After the last delta: the calls that the model asks for, in order, with call ids that differ."""

    @property
    def finish_reason(self) -> str | None:
        """After the last delta: stop, length, tool_calls, content_filter …, as the provider says."""


class Model(Protocol):
    @property
    def info(self) -> ModelInfo: ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Answer]:
        """Entering asks; ModelFailed there or while iterating. Retries happen inside and only before the first
        delta."""


class ModelFailed(AgentFailed):
    """The model could not answer. `code` is stable (`auth`, `rate-limit`, `context-length`, `unavailable`, `timeout`,
    `protocol`, `refused`, `bad-request`); the message says what happened and what to do."""
