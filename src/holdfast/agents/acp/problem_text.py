"""What a program says about an error, and how it wants a person to log in, in words for people."""

from collections.abc import Mapping
from typing import Any, Final

_MAX_METHODS: Final = 20
_MAX_NAME: Final = 200
_MAX_REASON: Final = 1_000  # Characters of the message of an error, and of its data
_IN_WORDS: Final = ("message", "details", "detail", "reason", "error")  # Fields of an error's data


def error_text(message: str, data: Any) -> str:
    """The message of an error, with what is in words in its data."""
    if isinstance(data, dict):
        data = next((data[name] for name in _IN_WORDS if isinstance(data.get(name), str)), None)
    text = message[:_MAX_REASON]
    if isinstance(data, str) and data.strip() and data not in text:
        text = f"{text.rstrip('. ')}: {data[:_MAX_REASON]}"
    return text.rstrip(". ")


def login_methods(info: Mapping[str, Any]) -> list[str]:
    """The names of the ways to log in that a program's answer to `initialize` names."""
    offered = info.get("authMethods")
    methods = [item for item in (offered if isinstance(offered, list) else ()) if isinstance(item, dict)]
    return [str(item.get("name") or item.get("id"))[:_MAX_NAME] for item in methods[:_MAX_METHODS]]
