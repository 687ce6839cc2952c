"""What can go wrong with a model, as values, and the sentences that people read.

A `Trouble` is what was found; `explain` makes the `ModelFailed` of it. Providers' own words are quoted, cut and cleared
of the key: some repeat it.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, assert_never

from holdfast.agents.models.port import ModelFailed
from holdfast.core.parts import Json
from holdfast.core.values import dataclass

Code = Literal[
    "auth", "rate-limit", "context-length", "unavailable", "timeout", "protocol", "refused", "bad-request", "not-found"
]
"""`not-found` is told apart for its sentence; to the outside it is a `bad-request`."""


@dataclass(frozen=True, slots=True)
class Trouble:
    code: Code
    detail: str
    retry: bool = False
    """Whether the same request may well succeed in a moment."""
    after: float | None = None
    """Seconds that the provider asks to wait."""


@dataclass(frozen=True, slots=True)
class Who:
    """Whom a failure is about."""

    provider: str
    model: str
    address: str
    key_name: str = "the provider's API key"
    """Where the key comes from: a variable's name, or words."""
    secret: str | None = field(default=None, repr=False)


_MARKS: tuple[tuple[Code, tuple[str, ...]], ...] = (
    (
        "context-length",
        (
            "context_length",
            "context length",
            "context window",
            "context size",
            "maximum context",
            "exceed_context",
            "too many tokens",
            "prompt is too long",
            "input is too long",
            "input token count",
        ),
    ),
    ("refused", ("content_filter", "content_policy", "content management policy", "moderation", "safety")),
    ("rate-limit", ("insufficient_quota", "rate_limit", "rate limit", "too many requests", "resource_exhausted")),
    ("auth", ("invalid_api_key", "incorrect api key", "api key not valid", "authentication", "unauthorized")),
    ("not-found", ("model_not_found", "no such model", "model not found")),
    ("unavailable", ("overloaded", "unavailable", "server_error", "internal error", "internal_error")),
    ("bad-request", ("invalid_request", "bad request", "invalid_argument")),
)
_STATUS: Mapping[int, Code] = {
    401: "auth",
    402: "rate-limit",
    403: "auth",
    404: "not-found",
    408: "timeout",
    413: "context-length",
    429: "rate-limit",
    504: "timeout",
}
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_FOR_GOOD = ("insufficient_quota", "billing", "credit")


def from_error(error: Json, status: int | None = None, after: float | None = None) -> Trouble:
    """Of an `error` object as providers send it: in the body of a failed answer, or in the middle of a stream."""
    fields = error if isinstance(error, dict) else {"message": error}
    message = _first_text(fields, "message", "detail", "error", "msg") or "no reason was given"
    found = _number(fields.get("code")) or _number(fields.get("status")) or status
    kinds = " ".join(str(fields.get(name) or "") for name in ("code", "type", "status"))
    return classify(found, f"{kinds} {message}".lower(), message, after)


def classify(status: int | None, marks: str, message: str, after: float | None = None) -> Trouble:
    """By the provider's words first where they say more than the status does (a 400 for a full context), then by the
    status. Without either the provider is taken to be ill, not the request."""
    code = next((code for code, words in _MARKS if any(word in marks for word in words)), None)
    by_status = _STATUS.get(status) if status is not None else None
    if status is None:
        code = code or "unavailable"
        return Trouble(code, message, retry=code in ("unavailable", "rate-limit"), after=after)
    if by_status is None:
        by_status = "unavailable" if status >= 500 or status == 425 else "bad-request"
    says_more = by_status == "bad-request" or (status == 403 and code == "refused")
    if code is None or code == "unavailable" or not says_more:
        code = by_status
    if status == 429 and "context" not in marks:
        code = "rate-limit"
    retry = status in _RETRIED and not (status == 429 and any(word in marks for word in _FOR_GOOD))
    return Trouble(code, message, retry, after)


def explain(trouble: Trouble, who: Who) -> ModelFailed:
    """The sentence: what happened, and what to do."""
    code = "bad-request" if trouble.code == "not-found" else trouble.code
    return ModelFailed(code, _sentence(trouble, who, quote(trouble.detail, who.secret)))


def quote(text: str, secret: str | None) -> str:
    """Somebody else's words, fit for a sentence of ours."""
    if secret:
        text = text.replace(secret, "…")
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())
    return (line if len(line) <= 300 else line[:299] + "…").rstrip(".")


def _sentence(trouble: Trouble, who: Who, detail: str) -> str:
    name = who.provider
    match trouble.code:
        case "auth":
            return f"{name} refused the key ({detail}). Check {who.key_name}, and that it may use {who.model}."
        case "rate-limit":
            when = "" if trouble.after is None else f" in {_duration(trouble.after)}"
            return f"{name} takes no more requests just now ({detail}). Try again{when or ' later'}, or check the plan."
        case "context-length":
            return f"The conversation is too long for {who.model} ({detail}). Compact it or start a new one."
        case "unavailable":
            return f"{name} at {who.address} is not available ({detail}). Try again in a minute."
        case "timeout":
            return f"{name} at {who.address} took too long ({detail}). Try again, or choose another model."
        case "protocol":
            return f"{name} at {who.address} sent something that cannot be understood ({detail}). Check its base URL."
        case "refused":
            return f"{name} refused to answer ({detail}). Put the request in other words."
        case "bad-request":
            return f"{name} did not accept the request ({detail}). Check the model's settings or choose another model."
        case "not-found":
            return f"{name} at {who.address} does not know {who.model} ({detail}). Choose another model."
        case _:
            assert_never(trouble.code)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"


def _first_text(fields: Mapping[str, Json], *names: str) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, dict):
            value = value.get("message")
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value:
            return str(value)[:500]
    return None


def _number(value: Json) -> int | None:
    """A status: providers write it as 429 or "429"."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and 400 <= value <= 599 else None
