"""Usage that providers report: tokens and costs. Costs are taken from the provider's report; estimates for those who
report none are made when somebody asks (`core.costs`)."""

from typing import Final, TypeGuard

from holdfast.core.events import Usage
from holdfast.core.parts import Json

MAX_TOKENS: Final = 2**40
"""Far above what a call can use; the sums over a run stay below 2**53, up to which JSON numbers are exact."""


def is_token_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MAX_TOKENS


def known_token_count(value: object) -> int | None:
    return value if is_token_count(value) else None


def known_cost(value: object) -> float | None:
    """An amount of money that can be right."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return float(value)


def parse_usage(usage: dict[str, Json]) -> Usage | None:
    """What an OpenAI-compatible server reports: tokens and, where it names it, the cost."""
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not is_token_count(read) or not is_token_count(written):
        return None
    cached = _count(usage.get("prompt_tokens_details"), "cached_tokens")
    cached = _count(usage, "prompt_cache_hit_tokens") if cached is None else cached  # DeepSeek's
    reasoning = _count(usage.get("completion_tokens_details"), "reasoning_tokens")
    return Usage(read, written, known_cost(usage.get("cost")), cached, reasoning)


def _count(details: Json, name: str) -> int | None:
    return known_token_count(details.get(name)) if type(details) is dict else None
