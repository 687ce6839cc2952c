"""Failures of model servers as values (`UpstreamError`), and the sentences that people read about them (`explain`).
The provider's message is quoted, but shortened, and without the API key, which some providers repeat.

`models.request_policy` sends a request again if its failure has `retry`. That is set here, by the status of a response,
and where a connection or an answer breaks off: `http_connection`, `http_client`, `chat_completion_stream`,
`chunk_assembler`, `pydantic_ai_stream`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from holdfast.core.parts import Json
from holdfast.models.provider_config import ProviderConfig, base_url, host_and_port, title
from holdfast.ports.model import UNSUPPORTED, ModelError

Code = Literal[
    "auth", "rate-limit", "context-length", "unavailable", "timeout", "protocol", "refused", "bad-request", "not-found"
]
"""`not-found` has its own sentence; outside this package it is a `bad-request`."""


@dataclass(frozen=True, slots=True)
class UpstreamError:
    """A value, not an exception: the adapters pass it around until it is retried or explained."""

    code: Code
    detail: str
    retry: bool = False  # Whether the same request may succeed shortly
    after: float | None = None  # Seconds that the provider asks to wait before the next attempt
    source: Literal["provider", "connection", "answer"] | None = None
    """Where the error in `detail` comes from, if it matters; `answer`: the connection broke in the middle of one."""
    setting: str | None = None  # The setting of the chat that a `bad-request` is about


_KEYWORDS: Mapping[Code, str] = {
    "context-length": "context_length|context length|context window|context size|maximum context|exceed_context|"
    "too many tokens|prompt is too long|input is too long|input token count",
    "refused": "content_filter|content_policy|content management policy|moderation|safety",
    "rate-limit": "insufficient_quota|rate_limit|rate limit|too many requests|resource_exhausted",
    "auth": "invalid_api_key|incorrect api key|api key not valid|authentication|unauthorized",
    "not-found": "model_not_found|no such model|model not found",
    "unavailable": "overloaded|unavailable|server_error|internal error|internal_error",
    "bad-request": "invalid_request|bad request|invalid_argument",
}
"""Patterns of the provider's words; the first that matches counts."""
_BY_STATUS: Mapping[Code, tuple[int, ...]] = {
    "auth": (401, 403),
    "rate-limit": (402, 429),
    "not-found": (404,),
    "timeout": (408, 504),
    "context-length": (413,),
}
_SENTENCES: Mapping[Code, str] = {
    "auth": "{provider} rejected the API key ({detail}). Check {key_name}{access}.",
    "rate-limit": "{provider} is limiting requests ({detail}). Try again {when}, or check your plan.",
    "context-length": "The conversation is too long for {model} ({detail}). "
    "Summarize older messages or start a new chat.",
    "unavailable": "{place} is not available: {detail}. Try again in a minute.",
    "timeout": "{place} took too long ({detail}). Try again, or choose another model.",
    "protocol": "{place} sent an invalid response ({detail}). Check its base URL.",
    "refused": "{provider} refused to answer ({detail}). Try rephrasing your message.",
    "bad-request": "{provider} rejected the request ({detail}). Check the model's settings, or choose another model.",
    "not-found": "{place} has no model {model} ({detail}). Choose another model.",
}
_UNAVAILABLE: Mapping[str, str] = {
    "provider": '{provider} returned an error: "{detail}". Try again in a minute.',
    "connection": "Can't reach {server}: {detail}. Try again in a minute.",
    "answer": "The connection to {provider} broke in the middle of the answer. Continue it, or try again.",
}
"""Sentences about an `unavailable` provider by the source of the error."""
_SETTING = "{model} does not accept this {setting} ({detail}). Change it in the chat settings, or try without it."
_SETTINGS: Mapping[str, str] = {
    "temperature": "temperature",
    "top_p": "top_p|topp|top p",
    "max_tokens": "max_tokens|max_completion_tokens|max_output_tokens|maxoutputtokens",
    "reasoning_effort": "reasoning_effort|reasoning.effort|thinking.budget_tokens|thinking_budget|thinking_level",
}
"""Settings of a chat by the names that providers have for them."""
_NO_KEY = "{provider} needs an API key. Add it in Settings → Models."
_NOT_RUNNING = "Can't reach {server}. Check that it is running."
_RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_SHORTEST_SECRET = 8
_MAX_MESSAGE = 4_000  # Characters of a provider's words that are looked at
_PERMANENT = "insufficient_quota|billing|credit"


def from_error(error: Json, status: int | None = None, after: float | None = None) -> UpstreamError:
    """Reads an `error` object as providers send it, in the body of a failed response or in the middle of a stream.

    Classifies by the provider's words if they say more than the status (a 400 for a full context), else by status. With
    neither, the provider is assumed to have failed, not the request."""
    fields = error if isinstance(error, dict) else {"message": error}
    message = _first_text(fields, "message", "detail", "error", "msg") or "no reason was given"
    status = _number(fields.get("code")) or _number(fields.get("status")) or status
    kinds = " ".join(str(fields.get(name) or "")[:_MAX_MESSAGE] for name in ("code", "type", "status"))
    text = f"{kinds} {message}".lower()
    code = next((code for code, words in _KEYWORDS.items() if re.search(words, text)), None)
    by_status = next((code for code, statuses in _BY_STATUS.items() if status in statuses), None)
    if status is None:
        code = code or "unavailable"
        return UpstreamError(code, message, code in ("unavailable", "rate-limit"), after, "provider")
    if by_status is None:
        by_status = "unavailable" if status >= 500 or status == 425 else "bad-request"
    says_more = by_status == "bad-request" or (status == 403 and code == "refused")
    if code is None or code == "unavailable" or not says_more:
        code = by_status
    if status == 429 and "context" not in text:
        code = "rate-limit"
    retry = status in _RETRYABLE and not (status == 429 and re.search(_PERMANENT, text))
    setting = _setting(str(fields.get("param") or "")) or _setting(message) if code == "bad-request" else None
    return UpstreamError(code, message, retry, after, "provider", setting)


def _setting(text: str) -> str | None:
    found = ((re.search(rf"\b({names})\b", text[:2000].lower()), name) for name, names in _SETTINGS.items())
    return min(((match.start(), name) for match, name in found if match), default=(0, None))[1]


def explain(error: UpstreamError, config: ProviderConfig, model: str | None) -> ModelError:
    """The failure in sentences: what happened, why and what to do. Without a model, its models were asked for."""
    code = "bad-request" if error.code == "not-found" else error.code
    text = _format(_template(error, config), error, config, model)
    return ModelError(code if error.setting is None else f"{UNSUPPORTED}{error.setting}", text)


def describe(error: UpstreamError, config: ProviderConfig, model: str) -> str:
    """What happened and why, without what to do: the request is being sent again."""
    return _format(f"{_template(error, config).partition('. ')[0].rstrip('.')}.", error, config, model)


def _template(error: UpstreamError, config: ProviderConfig) -> str:
    """Its first sentence says what happened."""
    if error.setting is not None:
        return _SETTING
    if error.code == "auth" and not config.api_key:
        return _NO_KEY
    told = _UNAVAILABLE.get(error.source or "") if error.code == "unavailable" else None
    # A port: the person's own server.
    if told and error.detail == "connection refused" and ":" in host_and_port(base_url(config)):
        return _NOT_RUNNING
    return told or _SENTENCES[error.code]


def _format(template: str, error: UpstreamError, config: ProviderConfig, model: str | None) -> str:
    provider, address = title(config), host_and_port(base_url(config))
    named_by_address = provider == address
    return template.format(
        provider=provider,
        model=model or "any model",
        access="" if model is None else f" and its access to {model}",
        place=provider if named_by_address else f"{provider} at {address}",
        server=provider if named_by_address else f"{provider} ({address})",
        key_name=config.key_name or f"the key of {config.name}",
        setting=(error.setting or "").replace("_", " "),
        detail=quote(error.detail, config.api_key),
        when="later" if error.after is None else f"in {_duration(error.after)}",
    )


def quote(text: str, secret: str | None) -> str:
    """A provider's words in one printable line, without the key. Placeholders such as `none` are no secret, and masking
    them would garble the words."""
    if secret and len(secret) >= _SHORTEST_SECRET:
        text = text.replace(secret, "…")
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())
    return (line if len(line) <= 300 else line[:299] + "…").rstrip(".")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"


def _first_text(fields: Mapping[str, Json], *names: str) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, dict):
            value = value.get("message")
        if isinstance(value, str) and (text := value[:_MAX_MESSAGE]).strip():
            return text
        if isinstance(value, list) and value:
            return str(value)[:500]
    return None


def _number(value: Json) -> int | None:
    """A status: providers write it as 429 or "429"."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and 400 <= value <= 599 else None
