"""What clients send. Of everything that OpenAI's calls may carry, each parameter is honoured, refused by name, or told
to be ignored; one that is not here is unknown, and refused."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from holdfast.faces.http.requests import MAX_TEXT
from holdfast.faces.openai.errors import unsupported


class In(BaseModel):
    """`defer_build`: as in `faces/http/requests.py`."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


Text = Annotated[str, Field(max_length=MAX_TEXT)]
Short = Annotated[str, Field(min_length=1, max_length=500)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Share = Annotated[float, Field(ge=0, le=1)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]
Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)
]
Things = Annotated[list[dict[str, JsonValue]], Field(max_length=10_000)]
Tools = Annotated[list[dict[str, JsonValue]], Field(max_length=500)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Reasoning(In):
    effort: Effort | None = None
    summary: JsonValue = None
    generate_summary: JsonValue = None


class TextWish(In):
    format: dict[str, JsonValue] | None = None
    verbosity: JsonValue = None


class Conversation(In):
    id: Short


class StreamOptions(In):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class Wanted(In):
    """What both calls have."""

    model: Short | None = None
    stream: bool | None = None
    store: bool | None = None
    metadata: Metadata | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    tools: Tools | None = None
    tool_choice: str | dict[str, JsonValue] | None = None
    parallel_tool_calls: bool | None = None
    stream_options: StreamOptions | None = None

    top_logprobs: JsonValue = None
    moderation: JsonValue = None
    user: JsonValue = None
    service_tier: JsonValue = None
    safety_identifier: JsonValue = None
    prompt_cache_key: JsonValue = None
    prompt_cache_options: JsonValue = None
    prompt_cache_retention: JsonValue = None


class ResponseIn(Wanted):
    input: Text | Things
    instructions: Text | None = None
    previous_response_id: Short | None = None
    conversation: Short | Conversation | None = None
    background: bool | None = None
    reasoning: Reasoning | None = None
    text: TextWish | None = None
    max_output_tokens: Tokens | None = None
    include: list[str] | None = None

    prompt: JsonValue = None
    max_tool_calls: JsonValue = None
    truncation: JsonValue = None
    context_management: JsonValue = None
    image: JsonValue = None
    access_programs: JsonValue = None


class ChatIn(Wanted):
    messages: Annotated[list[dict[str, JsonValue]], Field(min_length=1, max_length=10_000)]
    n: int | None = None
    stop: Text | Annotated[list[Text], Field(max_length=16)] | None = None
    seed: int | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    reasoning_effort: Effort | None = None
    response_format: dict[str, JsonValue] | None = None
    top_k: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    min_p: Share | None = None
    repeat_penalty: Annotated[float, Field(ge=0, le=100)] | None = None

    logprobs: JsonValue = None
    logit_bias: JsonValue = None
    modalities: JsonValue = None
    audio: JsonValue = None
    functions: JsonValue = None
    function_call: JsonValue = None
    web_search_options: JsonValue = None
    prediction: JsonValue = None
    verbosity: JsonValue = None


REFUSED: Final[Mapping[str, str]] = {
    "n": "One answer is made per call; send the call again for another.",
    "logprobs": "No probabilities are kept.",
    "top_logprobs": "No probabilities are kept.",
    "logit_bias": "It is passed on to no provider.",
    "modalities": "Only text is made here.",
    "audio": "Only text is made here.",
    "image": "Only text is made here.",
    "functions": "Send them as 'tools'.",
    "function_call": "Send it as 'tool_choice'.",
    "web_search_options": "There are no tools of the server's for a model alone; 'agent:chat' has some.",
    "prompt": "There are no stored prompts here; send 'instructions' and 'input'.",
    "max_tool_calls": "The client's own tools are called by the client.",
    "truncation": "Nothing is left out of what you send; what does not fit is refused.",
    "context_management": "Nothing is left out of what you send; what does not fit is refused.",
    "moderation": "Nothing is moderated here.",
    "access_programs": "There are none here.",
}
"""To leave these out would change the answer."""
HARMLESS: Final[Mapping[str, tuple[Any, ...]]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "truncation": ("disabled",),
    "service_tier": ("auto", "default"),
}
"""Values that ask for what is done anyway."""
IGNORED: Final = (
    "user",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "prediction",
    "verbosity",
)
"""The answer is as good without them; the client is told."""
_INCLUDE: Final = frozenset({"reasoning.encrypted_content"})


def judge(body: ResponseIn | ChatIn) -> list[str]:
    """The parameters that are ignored. Wrong: one that cannot be."""
    given = {name: getattr(body, name) for name in body.model_fields_set}
    asked = {n: v for n, v in given.items() if v is not None and not any(v == h for h in HARMLESS.get(n, ()))}
    for name in asked:
        if name in REFUSED:
            raise unsupported(name, REFUSED[name])
    ignored: list[str] = [name for name in IGNORED if name in asked]
    if isinstance(body, ResponseIn):
        ignored += _nested(body)
    return ignored


def _nested(body: ResponseIn) -> list[str]:
    ignored: list[str] = []
    for n, wish in enumerate(body.include or ()):
        if wish not in _INCLUDE:
            raise unsupported(f"include[{n}]", f"'{wish[:100]}' is not kept.")
        ignored.append(f"include[{n}]")
    if body.text is not None and body.text.verbosity is not None:
        ignored.append("text.verbosity")
    return ignored
